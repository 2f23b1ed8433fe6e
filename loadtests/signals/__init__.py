"""The sources of signals of a running service: processes and machine, PostgreSQL, and /metrics of the service."""
