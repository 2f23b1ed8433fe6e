"""Payload IOVs: payload files, each with the interval of moments in which it is valid."""

from django.conf import settings
from django.http import HttpResponseBase, QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api import ranges, streams
from cdb_rest.api.browsers import PAYLOAD_IOVS
from cdb_rest.api.conversion import document, document_of
from cdb_rest.api.descriptions import AS_OF, NUMBER, TEXT, in_path, request_example, required, response_example
from cdb_rest.api.documents import NestedPayloadList, PayloadIOVDocument, Statement, ValidPayloadIOV
from cdb_rest.api.examples import NESTED_PAYLOAD_LIST, PAYLOAD_IOV, VALID_PAYLOAD_IOV, page_of
from cdb_rest.api.inputs import PayloadIOVAttachInput, PayloadIOVInput, StrictView
from cdb_rest.api.paging import wants_page
from cdb_rest.api.plans import AttachedIOV, cuts_document
from cdb_rest.api.ranges import Range
from cdb_rest.api.windows import WINDOW, read_payload_type, read_window
from cdb_rest.api.writes import read_origin
from cdb_rest.exports.export import Selection
from cdb_rest.http.caching import Resource, conditional_get
from cdb_rest.http.lookup import read_tags
from cdb_rest.models import PayloadIOV
from cdb_rest.parsing.fields import read_body
from cdb_rest.parsing.parameters import parse_as_of, parse_moment, parse_number, parse_tag
from cdb_rest.rules.errors import PayloadIOVNotFoundError, invalid_field
from cdb_rest.rules.moment import END_OF_TIME, OPEN
from cdb_rest.writes import payload_iovs

# A string, because JavaScript would round the largest number, which stands for an open end.
DIGITS = {"type": "string", "pattern": "^[0-9]{1,19}$"}

START, END = ("startMajorIOV", "startMinorIOV"), ("endMajorIOV", "endMinorIOV")
# As an end: no limit.
UNLIMITED = "-1"
END_NUMBER = NUMBER | {"minimum": -1}
RANGE = [
    required("gtName", TEXT, "Name of the global tag.", "tiny"),
    required("startMajorIOV", NUMBER, "Major part of the first moment.", 0),
    required("startMinorIOV", NUMBER, "Minor part of the first moment.", 0),
    required("endMajorIOV", END_NUMBER, "Major part of the last moment; -1: the range has no end.", 1),
    required("endMinorIOV", END_NUMBER, "Minor part of the last moment; -1: the last one of the major part.", -1),
]
VALID = [required("gtName", TEXT, "Name of the global tag.", "tiny"), *WINDOW, *AS_OF]


class PayloadIOVListView(APIView):
    """All payload IOVs, ordered by id; with `page`, one page of them. Without `page`, the response may be large."""

    @extend_schema(
        summary="List payload IOVs",
        parameters=PAYLOAD_IOVS.parameters(),
        responses=PAYLOAD_IOVS.list_or_page(PayloadIOVDocument),
        examples=[
            response_example([PAYLOAD_IOV]),
            response_example(page_of(PAYLOAD_IOV, 100), "With page=1"),
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if wants_page(request.query_params):
            return Response(PAYLOAD_IOVS.page(request.query_params))
        return streams.payload_iovs(PayloadIOV.objects.all())

    @extend_schema(
        summary="Create a payload IOV",
        request=PayloadIOVInput,
        responses=PayloadIOVDocument,
        examples=[
            request_example(
                {
                    "payload_url": "pixel/run5.root",
                    "checksum": "9e107d9d",
                    "size": 1024,
                    "major_iov": 5,
                    "minor_iov": 0,
                    "major_iov_end": 6,
                    "minor_iov_end": 0,
                }
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Create a payload IOV. It is in no payload list until it is attached to one. Without an end, it is open."""
        created = payload_iovs.create_payload_iov(
            values=read_body(request, PayloadIOVInput), origin=read_origin(request)
        )
        return Response(document_of(PayloadIOVDocument, created))


class PayloadIOVByIdView(APIView):
    """One payload IOV."""

    @extend_schema(
        summary="Get a payload IOV",
        parameters=[in_path("iov_id", "Id of the payload IOV.", 10)],
        responses=PayloadIOVDocument,
        examples=[response_example(PAYLOAD_IOV)],
    )
    def get(self, request: Request, iov_id: str) -> Response:
        number = parse_number("id", iov_id)
        found = document(PayloadIOVDocument, PayloadIOV.objects.filter(id=number))
        if found is None:
            raise PayloadIOVNotFoundError(number)
        return Response(found)


class PayloadIOVRangeView(APIView):
    """The payload lists of the global tag, each with its IOVs that start in the range, ordered by start.

    The range includes both of its ends. Payload lists without such an IOV are left out. An IOV that started before the
    range is not included, even if it is valid in it.
    """

    @extend_schema(
        summary="List the IOVs that start in a range",
        parameters=[*RANGE, *AS_OF],
        responses=NestedPayloadList(many=True),
        examples=[response_example(NESTED_PAYLOAD_LIST)],
    )
    def get(self, request: Request) -> HttpResponseBase:
        asked = _read_range(request.query_params)
        parts = (*asked.first, *asked.last, settings.CDB_IOV_MODE)
        resource = Resource.range(asked.tag, asked.as_of, *parts)
        not_modified = conditional_get(request.META, resource)
        return not_modified or ranges.payload_lists(request, asked, resource.digest)


class ValidPayloadIOVView(StrictView):
    """The IOVs of the global tag that are valid somewhere in a window, each with the part in which it is valid.

    `since` and `until` of an element are that part: a strict lookup returns this IOV at its moments, and no other one of
    the payload type. The elements are ordered by payload type in byte order, then by start.

    `gtName` may be given several times, as in a lookup: the first tag that has a valid IOV decides. Then elements have a
    member `global_tag`, and an IOV comes once for each of its parts.
    """

    query = VALID
    repeatable = ("gtName", "rev")

    @extend_schema(
        summary="List the IOVs that are valid in a window",
        parameters=VALID,
        responses=ValidPayloadIOV(many=True),
        examples=[response_example(VALID_PAYLOAD_IOV)],
    )
    def get(self, request: Request) -> HttpResponseBase:
        tags = read_tags(dict(request.query_params.lists()))
        window, payload_type = read_window(request.query_params), read_payload_type(request.query_params)
        resource = Resource.tags("valid", tags, payload_type, *window.start, *window.end, settings.CDB_IOV_MODE)
        not_modified = conditional_get(request.META, resource)
        selections = [Selection(tag, payload_type, window, as_of) for tag, as_of in tags]
        return not_modified or ranges.valid_parts(request, selections, resource.digest)


class PayloadIOVAttachView(APIView):
    """Attach a payload IOV to a payload list. If it is in another list, it is detached from there first.

    The payload becomes valid inside its interval; outside of it nothing changes. Other IOVs in the interval are
    trimmed, moved, split or detached, and the response lists them. If the IOV is in this list already, nothing changes.

    If the tag is not unlocked, the IOV must not overlap existing ones, with one exception: if the last IOV of the list
    is open, an open IOV may start after its start. Otherwise the response is 409. It is also 409 if the tag is frozen,
    or if the IOV is in another list whose tag is not unlocked.
    """

    @extend_schema(
        summary="Attach a payload IOV to a payload list",
        request=PayloadIOVAttachInput,
        responses=AttachedIOV,
        examples=[request_example({"payload_list": "Pixel_Alignment_1", "piov_id": 10})],
    )
    def put(self, request: Request) -> Response:
        body = read_body(request, PayloadIOVAttachInput)
        attachment = payload_iovs.attach_payload_iov(
            payload_list=body["payload_list"], iov_id=body["piov_id"], origin=read_origin(request)
        )
        return Response(document_of(PayloadIOVDocument, attachment.iov) | cuts_document(attachment.cuts))


class PayloadIOVDeleteView(APIView):
    """Delete the payload IOV of the global tag and payload type that has exactly this start and end.

    Without an end, the open IOV with this start is deleted. If the deleted IOV hid a part of the IOV before it, that
    part becomes valid. If the tag is not unlocked, the response is 409.
    """

    @extend_schema(
        summary="Delete a payload IOV",
        parameters=[
            in_path("global_tag", "Name of the global tag.", "tiny"),
            in_path("payload_type", "Name of the payload type.", "Pixel_Alignment"),
            in_path("major", "Major part of the start.", "137", DIGITS),
            in_path("minor", "Minor part of the start.", "6129", DIGITS),
            in_path("major_end", f"Major part of the end; {OPEN} if it is open.", str(OPEN), DIGITS),
            in_path("minor_end", f"Minor part of the end; {OPEN} if it is open.", str(OPEN), DIGITS),
        ],
        request=None,
        responses={200: Statement},
    )
    def delete(
        self,
        request: Request,
        global_tag: str,
        payload_type: str,
        major: str,
        minor: str,
        major_end: str | None = None,
        minor_end: str | None = None,
    ) -> Response:
        start = parse_moment(("major", "minor"), (major, minor))
        end = END_OF_TIME if major_end is None else parse_moment(("major_end", "minor_end"), (major_end, minor_end))
        payload_iovs.delete_payload_iov(
            global_tag=global_tag, payload_type=payload_type, start=start, end=end, origin=read_origin(request)
        )
        return Response({"detail": f"Payload IOV from {start} to {end} of {payload_type} in {global_tag} deleted."})


def _read_range(query: QueryDict) -> Range:
    tag = parse_tag(query)
    first = parse_moment(START, (query.get(START[0]), query.get(START[1])))
    major, minor = query.get(END[0]), query.get(END[1])
    if major == UNLIMITED:
        major, minor = str(OPEN), UNLIMITED
    last = parse_moment(END, (major, str(OPEN) if minor == UNLIMITED else minor))
    if last < first:
        raise invalid_field(END[0], f"The range from {first} to {last} is empty.")
    return Range(tag, first, last, parse_as_of(query))
