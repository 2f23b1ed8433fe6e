"""Recordings: the outcome of every request of a load test, its format, writing and reading."""
