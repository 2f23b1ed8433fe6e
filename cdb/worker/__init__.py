"""The gunicorn worker of the service: it buffers requests and responses, and limits both."""
