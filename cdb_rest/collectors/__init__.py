"""What is looked at when /metrics is asked for: the processes, the database, PgBouncer, nginx.

Each collector has `read()`, which returns metrics, takes as long as it takes and may raise anything; `exposition` calls them all,
sets them bounds and makes the text of it.
"""
