"""The embedded PostgreSQL: real server programs from a Python wheel, with the data in one directory."""
