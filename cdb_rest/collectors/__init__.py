"""Collectors of metrics that are read when Prometheus scrapes the service: processes, database, PgBouncer, nginx.

Each collector has a function `read()`, which returns metrics and may raise any exception. `exposition` calls them, each
with a timeout, and formats the result.
"""
