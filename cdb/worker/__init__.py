"""The gunicorn worker of the service, which buffers and limits requests and responses."""
