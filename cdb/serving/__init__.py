"""The production shape on one machine: nginx, two gunicorn instances and PgBouncer around PostgreSQL, as `make serve` runs it."""
