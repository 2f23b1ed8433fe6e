"""Write services. Each is one function that runs in one transaction and raises the errors of `cdb_rest.rules.errors`.

All writers take locks in the same order, so that they wait for each other but cannot deadlock: global tags by id, then
payload lists by id, then payload IOVs by id, and last, if several tags change, their counts.
"""
