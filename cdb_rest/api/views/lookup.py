"""Lookup: which payload file each payload type of a global tag has at a moment of data taking."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.api.conditional import digest_of, headers_of, read_known, unchanged
from cdb_rest.api.examples import PAYLOAD_IOV
from cdb_rest.api.schema import NUMBER, TEXT, required, response_example
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import Mode
from cdb_rest.lookup import reading
from cdb_rest.lookup.question import COLUMNS, Question
from cdb_rest.metrics import counts
from cdb_rest.parsing.parameters import parse_flag, parse_moment

QUERY = [
    required("gtName", TEXT, "Name of the global tag.", "tiny"),
    required("majorIOV", NUMBER, "First half of the moment.", 5),
    required("minorIOV", NUMBER, "Second half of the moment.", 0),
    OpenApiParameter("shape", str, enum=["list", "dict"], description="Rows as arrays (default) or as objects."),
    OpenApiParameter("strict", str, enum=["0", "1"], description="1 leaves out IOVs whose validity is over."),
]
VALUE = {"oneOf": [{"type": "string", "nullable": True}, {"type": "integer"}]}
ROW = {
    "oneOf": [
        {"type": "array", "items": VALUE, "minItems": len(COLUMNS), "maxItems": len(COLUMNS)},
        {"type": "object", "properties": dict.fromkeys(COLUMNS, VALUE), "required": list(COLUMNS)},
    ]
}
ROW_EXAMPLE = {"payload_type_name": "Pixel_Alignment"} | {name: PAYLOAD_IOV[name] for name in COLUMNS[1:]}
lookup_schema = extend_schema(
    parameters=QUERY,
    examples=[
        response_example([list(ROW_EXAMPLE.values())], "With shape=list"),
        response_example([ROW_EXAMPLE], "With shape=dict"),
    ],
    responses={200: {"type": "array", "items": ROW, "description": f"Columns: {', '.join(COLUMNS)}."}},
)


SINCE, UNTIL, CANONICAL = "CDB-Valid-Since", "CDB-Valid-Until", "CDB-Canonical-Moment"
EXTRAS = [
    OpenApiParameter(
        "window",
        str,
        enum=["0", "1"],
        description=f"1: the headers {SINCE} and {UNTIL} say in which interval the response is the same.",
    ),
    OpenApiParameter(
        "snap",
        str,
        enum=["0", "1"],
        description=f"1: as window, and the header {CANONICAL} is the moment to ask for instead.",
    ),
]


@dataclass(frozen=True, slots=True)
class Extras:
    """What a client wants to know besides the answer: its window, and the moment that stands for all in the window."""

    window: bool = False
    canonical: bool = False


class LookupView(APIView):
    """For each payload list of the global tag, the IOV with the latest start at or before the moment, ordered by payload type.

    Lists that have no such IOV are left out. The end of an IOV is not considered, unless `strict=1` asks for it.

    Each row is an array of `payload_type_name`, `payload_url`, `checksum`, `size`, `major_iov`, `minor_iov`, `major_iov_end`,
    `minor_iov_end`, `revision`, in this order; or with `shape=dict` an object with these keys.
    """

    @extend_schema(summary="Look up payloads at a moment", parameters=EXTRAS)
    @lookup_schema
    def get(self, request: Request) -> HttpResponse:
        question, extras = read_lookup(request.query_params)
        status, headers, body = answer_lookup(question, extras, request.META)
        return HttpResponse(body, status=status, headers=headers) if body else unchanged(headers)


def read_lookup(query: Mapping[str, str]) -> tuple[Question, Extras]:
    """What the parameters of a query string ask. Raises `InvalidInputError`."""
    window, canonical = parse_flag("window", query.get("window")), parse_flag("snap", query.get("snap"))
    return read_question(query), Extras(window or canonical, canonical)


def answer_lookup(question: Question, extras: Extras, meta: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a question that came with these WSGI headers; of 304 the body is empty.

    Raises `GlobalTagNotFoundError`.
    """
    counts.LOOKUPS_REACHED.inc(1)
    asked = (question.tag, *question.moment, question.only_valid, question.as_objects, question.mode.value)
    digest = digest_of(*asked, extras.window, extras.canonical)
    found = reading.look_up(question, read_known(meta, digest), with_window=extras.window)
    headers = headers_of(found.state, digest)
    if found.text is None:
        return 304, headers, b""
    headers["Content-Type"] = "application/json"
    if found.window is not None:
        since, until = found.window.on_wire(question.mode)
        headers |= {SINCE: "{},{}".format(*since), UNTIL: "{},{}".format(*until)}
        if extras.canonical:
            headers[CANONICAL] = headers[SINCE]
    return 200, headers, found.text.encode()


def read_question(query: Mapping[str, str]) -> Question:
    """The question that the parameters of a query string ask. Raises `InvalidInputError`."""
    tag = query.get("gtName")
    if not tag:
        raise InvalidInputError("gtName is required.", {"gtName": ["gtName is required."]})
    shape = query.get("shape", "list")
    if shape not in ("list", "dict"):
        raise InvalidInputError("shape must be list or dict.", {"shape": ["shape must be list or dict."]})
    return Question(
        tag=tag,
        moment=parse_moment(("majorIOV", "minorIOV"), (query.get("majorIOV"), query.get("minorIOV"))),
        only_valid=parse_flag("strict", query.get("strict")),
        as_objects=shape == "dict",
        mode=Mode(settings.CDB_IOV_MODE),
    )
