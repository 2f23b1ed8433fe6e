"""The conditions database: its rules, tables, reads, writes and REST API."""
