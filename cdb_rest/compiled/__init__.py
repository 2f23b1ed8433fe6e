"""Compiled lists: files from which a process answers lookups without the database, or nearly so.

A *pack* is a file with the rows of some payload lists, each in one version (`pack`). Tags and past revisions that share lists
use the same packs. `compiler` and `writer` make packs; `maintenance` decides which ones. `state` reads from the database which
lists a tag has, `tag` answers lookups in such a state from packs, and `registry` has the states and packs of this process.
"""
