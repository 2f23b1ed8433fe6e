"""Reads of the past: revisions of global tags, their payload lists and IOVs, and what each change removed and added."""
