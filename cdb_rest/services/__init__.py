"""Writes that cross tables: one function each, one transaction each, errors raised in the field's terms.

Locks are always taken in one order, so that writers queue but never block each other for good: global tags by id, then
payload lists by id, then payload IOVs by id, and last of all, where several tags are concerned, their counts.
"""
