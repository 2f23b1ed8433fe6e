"""The campaigns of `make load`: each answers one question with load from locust, and writes a report."""
