"""What is counted about the service while it runs, by all its processes together; `cdb_rest.observe` makes it readable."""
