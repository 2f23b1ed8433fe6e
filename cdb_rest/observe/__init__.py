"""Observability of requests: the request context, log records, metrics and the Server-Timing header."""
