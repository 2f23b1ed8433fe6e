"""The configuration of the cdb service, and the programs that serve it: gunicorn, nginx, PgBouncer and PostgreSQL."""
