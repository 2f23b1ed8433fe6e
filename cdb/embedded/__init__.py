"""The embedded PostgreSQL: a server of our own that runs as long as processes of the service use it."""
