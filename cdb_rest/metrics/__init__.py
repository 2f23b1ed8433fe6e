"""Prometheus metrics that all processes of the service count together."""
