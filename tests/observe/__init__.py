"""Tests of the request context, log records and metrics."""
