"""Where the signals of a running service come from: processes and machine, PostgreSQL, and what the service tells Prometheus."""
