"""The production deployment on one machine (`make serve`): nginx, two gunicorn instances, PgBouncer and PostgreSQL."""
