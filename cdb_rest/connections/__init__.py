"""Connections to PostgreSQL: choice of the server, timeouts, circuit breaker, replicas and snapshots."""
