"""Compiled tags: files from which a process answers lookups in a global tag without the database, or nearly so.

A compiled tag is made of one state of a tag. It is a cache: without it, PostgreSQL answers. `manifest` describes the files,
`compiler` makes them, `tag` reads them, `directory` manages them on this host, and `registry` has those that this process uses.
"""
