"""Connections to PostgreSQL: timeouts, circuit breaker, replicas for lookups, and snapshots."""
