"""Documents of the scenario tiny, as examples in the API's description.

They equal the service's documents, except for the times, and for arrays, which have only one of their elements.
"""

import json
from pathlib import Path
from typing import Any

from cdb_rest.api.base.conversion import Document

_documents: dict[str, Document] = json.loads(Path(__file__).with_suffix(".json").read_bytes())
STATUS, PAYLOAD_TYPE, GLOBAL_TAG, PAYLOAD_LIST, PAYLOAD_IOV, CHANGE, INSERTION, REVERSION, IMPORT = (
    _documents[name]
    for name in (
        "status", "payload_type", "global_tag", "payload_list", "payload_iov", "change", "insertion", "reversion", "import",
    )
)  # fmt: skip
VALID_PAYLOAD_IOV = {"payload_type": "Pixel_Alignment"} | {
    name: PAYLOAD_IOV[name]
    for name in (
        "payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "revision",
    )
} | {"since": [1, 0], "until": [14, 2459]}  # fmt: skip
PAYLOAD_IOV_OF_TAG = PAYLOAD_IOV | {"global_tag": "tiny", "payload_type": "Pixel_Alignment"}
COUNTED_PAYLOAD_LIST = PAYLOAD_LIST | {"iov_count": 10}
NESTED_PAYLOAD_LIST = PAYLOAD_LIST | {"payload_iov": [PAYLOAD_IOV]}
LIMITS: Document = {"closed_until": None, "largest_major": None}
LIGHT_GLOBAL_TAG = GLOBAL_TAG | LIMITS
NESTED_GLOBAL_TAG = (
    LIMITS
    | {name: GLOBAL_TAG[name] for name in ("id", "name", "author", "created", "updated")}
    | {
        "status": STATUS | {"description": "Everything may change."},
        "payload_lists": [NESTED_PAYLOAD_LIST],
    }
)


def page_of(document: Document, count: int) -> dict[str, Any]:
    """The first page of `count` documents, as an example: `results` has only this one of them."""
    return {"count": count, "page": 1, "page_size": 25, "total_pages": -(-count // 25), "results": [document]}
