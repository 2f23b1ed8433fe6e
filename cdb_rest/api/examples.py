"""Documents of the scenario tiny, as examples in the API's description.

They equal the service's documents, except for the times, and for arrays, which have only one of their elements.
"""

from typing import Any

from cdb_rest.api.documents import Document

TIME = "2026-01-01T00:00:00.000000Z"

STATUS = {"id": 1, "name": "unlocked", "created": TIME}
PAYLOAD_TYPE = {"id": 1, "name": "Pixel_Alignment", "created": TIME}
GLOBAL_TAG = {
    "id": 1,
    "name": "tiny",
    "author": "seed_scenario",
    "status": "unlocked",
    "payload_lists_count": 10,
    "payload_iov_count": 100,
    "created": TIME,
    "updated": TIME,
    "revision": 1,
}
PAYLOAD_IOV = {
    "id": 10,
    "payload_url": "Pixel_Alignment/tiny/000000_dcd93f5b.root",
    "checksum": "dcd93f5b105faddf594ee445f50aeac9",
    "size": 905595,
    "major_iov": 1,
    "minor_iov": 0,
    "comb_iov": "1.0000000000000000000",
    "major_iov_end": 14,
    "minor_iov_end": 2459,
    "payload_list": "Pixel_Alignment_1",
    "revision": "1",
    "inserted": TIME,
}
VALID_PAYLOAD_IOV = {"payload_type": "Pixel_Alignment"} | {
    name: PAYLOAD_IOV[name]
    for name in (
        "payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "revision",
    )
} | {"since": [1, 0], "until": [14, 2459]}  # fmt: skip
PAYLOAD_LIST = {
    "id": 1,
    "name": "Pixel_Alignment_1",
    "global_tag": "tiny",
    "payload_type": "Pixel_Alignment",
    "created": TIME,
}
COUNTED_PAYLOAD_LIST = PAYLOAD_LIST | {"iov_count": 10}
NESTED_PAYLOAD_LIST = PAYLOAD_LIST | {"payload_iov": [PAYLOAD_IOV]}
NESTED_GLOBAL_TAG = {
    "id": 1,
    "name": "tiny",
    "author": "seed_scenario",
    "status": STATUS | {"description": "Everything may change."},
    "payload_lists": [NESTED_PAYLOAD_LIST],
    "created": TIME,
    "updated": TIME,
}
CHANGE = {
    "global_tag": "tiny",
    "revision": 1,
    "time": TIME,
    "actor": "seed_scenario",
    "action": "seed",
    "comment": "",
    "payload_iovs_before": 0,
    "payload_iovs_after": 100,
}


def page_of(document: Document, count: int) -> dict[str, Any]:
    """The first page of `count` documents, as an example: `results` has only this one of them."""
    return {"count": count, "page": 1, "page_size": 25, "total_pages": -(-count // 25), "results": [document]}
