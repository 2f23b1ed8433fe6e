"""Faults put into the service under load, and what its clients saw of them: `make chaos`."""
