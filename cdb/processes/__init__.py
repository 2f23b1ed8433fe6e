"""Processes of the service on one machine: children, ports, directories, and gunicorn as the child of `make run`."""
