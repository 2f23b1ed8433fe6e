"""Lookup: which payload file each payload type of a global tag has at a moment of data taking."""

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import F, OuterRef, Subquery
from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Shape, documents
from cdb_rest.api.base.descriptions import AS_OF, NUMBER, TEXT, request_example, required, response_example
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import array, respond
from cdb_rest.api.base.windows import (
    PAYLOAD_TYPE_PARAMETERS,
    OneOrManyField,
    PayloadTypesInput,
    payload_types_of,
    tags_of,
)
from cdb_rest.api.examples import PAYLOAD_IOV
from cdb_rest.api.payload_iovs import PayloadIOVDocument
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.exports.export import check_payload_types
from cdb_rest.history.contents import find_past, past_lists
from cdb_rest.http.caching import REVISION_HEADER, combined, not_modified, revisions_of
from cdb_rest.http.lookup import (
    CANONICAL,
    KNOWN,
    SINCE,
    UNTIL,
    read_lookup_of_tags,
    respond_to_lookup,
    respond_to_stack_lookup,
)
from cdb_rest.lookup.model import COLUMNS, LookupQuery
from cdb_rest.lookup.shared_reads import read_state
from cdb_rest.lookup.stack import Result, Stack, look_up_many
from cdb_rest.models import PayloadList
from cdb_rest.parsing.fields import MomentField, MomentsField, NumberField, TextField, read_body
from cdb_rest.parsing.parameters import PAYLOAD_TYPES, parse_moment, parse_tag
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import Mode, Moment
from cdb_rest.rules.names import NAME_LENGTH
from cdb_rest.strategies.implementations import find_rows


class ManyLookupsDocument(Shape):
    """The moments that have the same result, and its rows.

    Instead of `rows`, there may be `same_as`: the number of an earlier element with the same rows, counted from 0.
    """

    moments = serializers.ListField(child=MomentField())
    rows = serializers.ListField(child=serializers.ListField(), required=False)
    same_as = serializers.IntegerField(required=False)


# The maximum numbers of moments in a request for lookups, and in one for affected moments.
MAX_MOMENTS = 10_000


class ManyLookupsInput(PayloadTypesInput):
    """Lookups at many moments, in a tag or in several ones, with the parameters of a lookup."""

    gtName = OneOrManyField(TextField(max_length=NAME_LENGTH))  # noqa: N815 -- as in the query string of a lookup
    moments = MomentsField(MAX_MOMENTS)
    strict = serializers.BooleanField(default=False)
    shape = serializers.ChoiceField(choices=["list", "dict"], default="list")
    rev = OneOrManyField(NumberField(allow_null=True), required=False)
    at = TextField(required=False)


def queries_of(values: dict[str, Any]) -> list[LookupQuery]:
    """The lookups of a validated `ManyLookupsInput`, one for each tag, without a moment. Raises `InvalidInputError`."""
    tags = tags_of(values)
    if len(tags) * len(values["moments"]) > MAX_MOMENTS:
        raise invalid_field(
            "moments",
            f"The number of moments times the number of tags must be at most {MAX_MOMENTS} "
            f"(got {len(values['moments'])} times {len(tags)}).",
        )
    return [
        LookupQuery(
            tag=tag,
            moment=Moment(0, 0),
            only_valid=values["strict"],
            as_objects=values["shape"] == "dict",
            mode=Mode(settings.CDB_IOV_MODE),
            as_of=as_of,
            payload_types=payload_types_of(values),
        )
        for tag, as_of in tags
    ]


MOMENT_OF_TAG = [
    required("gtName", TEXT, "Name of the global tag.", "tiny"),
    required("majorIOV", NUMBER, "Major part of the moment.", 5),
    required("minorIOV", NUMBER, "Minor part of the moment.", 0),
]
QUERY = [
    *MOMENT_OF_TAG,
    OpenApiParameter("shape", str, enum=["list", "dict"], description="Rows as arrays (default) or as objects."),
    OpenApiParameter("strict", str, enum=["0", "1"], description="1 leaves out IOVs that ended before the moment."),
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

EXTRAS = [
    OpenApiParameter(
        "window",
        str,
        enum=["0", "1"],
        description=f"1: the headers {SINCE} and {UNTIL} give the interval in which the response is the same.",
    ),
    OpenApiParameter(
        "snap",
        str,
        enum=["0", "1"],
        description=f"1: as window, and the header {CANONICAL} gives one moment that clients can use for the whole interval.",
    ),
]


class LookupView(APIView):
    """Lookups at one moment, or at many."""

    repeatable = ("gtName", "rev", *PAYLOAD_TYPES)
    known = {"GET": KNOWN, "POST": ()}
    max_moments = MAX_MOMENTS

    @extend_schema(summary="Look up payloads at a moment", parameters=[*PAYLOAD_TYPE_PARAMETERS, *EXTRAS, *AS_OF])
    @lookup_schema
    def get(self, request: Request) -> HttpResponse:
        """For each payload list of the global tag, the IOV with the latest start at or before the moment, by payload type.

        Lists without such an IOV are left out. The end of an IOV is ignored, unless `strict=1` is given.

        Each row is an array of `payload_type_name`, `payload_url`, `checksum`, `size`, `major_iov`, `minor_iov`,
        `major_iov_end`, `minor_iov_end`, `revision`, in this order; or with `shape=dict` an object with these keys.

        `gtName` may be given several times: for each payload type, the first tag that has a valid IOV decides. Then `rev` is
        given once for each tag, empty for the present.
        """
        queries, extras = read_lookup_of_tags(dict(request.query_params.lists()))
        respond = (
            partial(respond_to_lookup, queries[0]) if len(queries) == 1 else partial(respond_to_stack_lookup, queries)
        )
        status, headers, body = respond(extras, request.META)
        return HttpResponse(body, status=status, headers=headers) if body else not_modified(headers)

    @extend_schema(
        summary="Look up payloads at many moments",
        request=ManyLookupsInput,
        responses=ManyLookupsDocument(many=True),
        examples=[
            request_example({"gtName": "tiny", "moments": [[5, 0], [5, 1]], "strict": True}),
            response_example({"moments": [[5, 0], [5, 1]], "rows": [list(ROW_EXAMPLE.values())]}),
        ],
    )
    def post(self, request: Request) -> HttpResponseBase:
        """The results of lookups at many moments: each distinct result once, with the moments that have it.

        The elements are in the order of their first moments. The rows of an element are those of a lookup at its moments, with
        the same `strict` and `shape`. If an earlier element has the same rows, `same_as` is the number of that element, counted
        from 0.

        `gtName` may be an array of tags, as in a lookup in several tags. Then `rev` is an array with null for the present.
        """
        values = read_body(request, ManyLookupsInput)
        return lookups(queries_of(values), values["moments"])


class IOVLookupView(APIView):
    """The IOVs that a lookup finds, ordered by the id of the payload list.

    The service has it for clients of earlier versions of nopayloaddb. New clients should use the lookup, which is much faster.
    """

    @extend_schema(
        summary="Look up payload IOVs",
        parameters=MOMENT_OF_TAG,
        responses=PayloadIOVDocument(many=True),
        examples=[response_example(PAYLOAD_IOV)],
    )
    def get(self, request: Request) -> Response:
        numbers = (request.query_params.get("majorIOV"), request.query_params.get("minorIOV"))
        query = LookupQuery(parse_tag(request.query_params), parse_moment(("majorIOV", "minorIOV"), numbers))
        with snapshot():
            tag_id, model = find_rows(query)
            latest = model.objects.filter(payload_list=OuterRef("id"), comb_iov__lte=query.moment.combined)
            ids = PayloadList.objects.filter(global_tag=tag_id).values_list(
                Subquery(latest.order_by(F("comb_iov").desc()).values("id")[:1]), flat=True
            )
            rows = model.objects.filter(payload_list__global_tag=tag_id, id__in=list(ids))
            return Response(documents(PayloadIOVDocument, rows.order_by("payload_list")))


def lookups(queries: Sequence[LookupQuery], moments: Sequence[Moment]) -> HttpResponseBase:
    """A JSON array of the results at the moments, with the revisions of the tags. There is one query for each tag."""
    revisions = ""

    def pieces() -> Generator[bytes]:
        nonlocal revisions
        revisions = revisions_of(combined([read_state(query.tag, query.as_of) for query in queries]))
        if queries[0].payload_types:
            pasts = [find_past(query.tag, query.as_of) for query in queries if query.as_of]
            check_payload_types(
                queries[0].payload_types, {item.payload_type for past in pasts for item in past_lists(past)}
            )
        yield from array(_element(found) for found in look_up_many(Stack(queries), moments))

    # It makes the first pieces, so the revisions have been read when it returns.
    response = respond(pieces())
    response[REVISION_HEADER] = revisions
    return response


def _element(found: Result) -> Iterator[bytes]:
    moments = [list(moment) for moment in found.moments]
    if found.body is None:
        yield dump({"moments": moments, "same_as": found.same_as})
    else:
        yield from (b'{"moments":', dump(moments), b',"rows":', found.body, b"}")
