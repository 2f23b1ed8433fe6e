"""What the tests of access share: names, bodies of requests, and rules."""

from cdb_rest.access import rules
from cdb_rest.writes import access

MINE, OTHER = "mine", "other"
PATTERN = "mine.*"
ROW = {"payload_url": "file", "checksum": "c", "major_iov": 5, "minor_iov": 0, "major_iov_end": 6, "minor_iov_end": 0}
INSERTION = {"payload_type": "Gain", "payload_url": "file", "checksum": "c", "since": [5, 0], "until": [6, 0]}


def grant(**values):
    rule, _ = access.grant(actor="test", **values)
    rules.forget()
    return rule


def rename(payload_list, name):
    payload_list.name = name
    payload_list.save()
    return payload_list
