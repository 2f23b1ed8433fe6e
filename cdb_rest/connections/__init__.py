"""Connections to PostgreSQL: which server is asked, how long it may take, and what happens while it is away."""
