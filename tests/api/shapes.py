"""The shapes of the documents that existing clients read: their keys, in order."""

import re

COUNTS = ["payload_lists_count", "payload_iov_count"]
FLAT_TAG = ["id", "name", "author", "status", *COUNTS, "created", "updated", "revision"]
TAG = ["id", "name", "author", "status", "created", "updated"]
NESTED_TAG = ["id", "name", "author", "status", "payload_lists", "created", "updated"]
NAMED = ["id", "name", "created"]
LIST = ["id", "name", "global_tag", "payload_type", "created"]
NESTED_LIST = ["id", "name", "global_tag", "payload_type", "payload_iov", "created"]
CUTS = ["trimmed", "moved", "split", "detached"]
IOV = [
    "id",
    "payload_url",
    "checksum",
    "size",
    "major_iov",
    "minor_iov",
    "comb_iov",
    "major_iov_end",
    "minor_iov_end",
    "payload_list",
    "revision",
    "inserted",
]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def keys(document):
    return list(document)
