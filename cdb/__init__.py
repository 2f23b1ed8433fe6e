"""The configuration of the cdb service, and the programs that serve it: granian, gunicorn, nginx and PostgreSQL."""
