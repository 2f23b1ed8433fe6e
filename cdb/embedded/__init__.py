"""The embedded PostgreSQL: a server that runs as long as at least one process of the service uses it."""
