"""What is looked at when /metrics is asked for: the processes, the database, PgBouncer, nginx.

Each module has `read()`, which returns metrics, takes as long as it takes and may raise anything; `cdb_rest.observe.scrape`
sets it bounds.
"""
