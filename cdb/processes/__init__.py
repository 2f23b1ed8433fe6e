"""Utilities for the processes of the service on one machine: child processes, signals, ports, directories, gunicorn."""
