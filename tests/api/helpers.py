"""What the tests of the API share: names, bodies, rules, paths, and the keys of documents, in their order."""

import re

from cdb_rest.access import rules
from cdb_rest.api.urls import views_and_paths
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


MOMENT_OF_LOOKUP = "gtName=tag&majorIOV=5&minorIOV=0"
LOOKUP = f"payloadiovs/?{MOMENT_OF_LOOKUP}"
OF_THE_TAG = (LOOKUP, "globalTag/tag", "globalTag/tag?light", "gtPayloadLists/tag")


PATH = "payload-iovs/insert"


def body(**changes):
    return {
        "global_tag": "tag",
        "payload_type": "Gain",
        "payload_url": "new.root",
        "checksum": "ab12",
        "since": [5, 0],
        "until": "open",
    } | changes


def insert(api, url, since, payload_type="Gain"):
    api.post(PATH, body(payload_type=payload_type, payload_url=url, checksum="c", since=since)).ok()


def rows(api):
    """URL, start and end of each row of the tag."""
    lists = api.get("globalTag/tag").ok()["payload_lists"]
    return [
        (iov["payload_url"], (iov["major_iov"], iov["minor_iov"]), (iov["major_iov_end"], iov["minor_iov_end"]))
        for payload_list in lists
        for iov in payload_list["payload_iov"]
    ]


WRITES = [
    (method, re.sub(r"<str:(\w+)>", r"1", paths[0]))
    for view, paths in views_and_paths()
    for method in ("POST", "PUT", "DELETE")
    if hasattr(view, method.lower())
]
READS = [re.sub(r"<str:(\w+)>", r"{}", paths[0]) for view, paths in views_and_paths() if hasattr(view, "get")]
IOV = [
    "id", "payload_url", "checksum", "size", "major_iov", "minor_iov", "comb_iov", "major_iov_end", "minor_iov_end",
    "payload_list", "revision", "inserted",
]  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def keys(document):
    return list(document)
