"""Payload IOVs: payload files, each with the interval of moments in which it is valid."""

from functools import partial
from typing import Any

from django.db.models import Model, QuerySet, Sum
from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Document, Shape, document, document_of, stream_documents
from cdb_rest.api.base.descriptions import in_path, request_example, response_example
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import array, respond
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import OptionalBodyView, Statement
from cdb_rest.api.base.writes import respond_to_write
from cdb_rest.api.examples import PAYLOAD_IOV, PAYLOAD_IOV_OF_TAG, page_of
from cdb_rest.api.plans import CutsDocument, cuts_document
from cdb_rest.models import ListedPayloadIOV, PayloadIOV, PayloadList
from cdb_rest.parsing.fields import Input, NumberField, PayloadURLField, RevisionField, TextField, read_body
from cdb_rest.parsing.parameters import parse_flag, parse_moment, parse_number
from cdb_rest.rules.errors import PayloadIOVNotFoundError, invalid_field
from cdb_rest.rules.moment import END_OF_TIME, OPEN
from cdb_rest.rules.names import LIST_NAME_LENGTH, TEXT_LENGTH
from cdb_rest.writes import payload_iovs


class PayloadIOVDocument(Shape):
    """A payload IOV. `comb_iov` is a string, because JSON numbers lose digits in many programs."""

    id = serializers.IntegerField()
    payload_url = serializers.CharField()
    checksum = serializers.CharField()
    size = serializers.IntegerField()
    major_iov = serializers.IntegerField()
    minor_iov = serializers.IntegerField()
    comb_iov = serializers.CharField()
    major_iov_end = serializers.IntegerField()
    minor_iov_end = serializers.IntegerField()
    payload_list = serializers.CharField(source="payload_list.name", allow_null=True)
    revision = serializers.CharField(source="extra", allow_null=True)
    inserted = serializers.DateTimeField(source="created")


class PayloadIOVItem(PayloadIOVDocument):
    """A payload IOV on a page, with the global tag and the payload type of its list."""

    global_tag = serializers.CharField(source="payload_list.global_tag.name", allow_null=True)
    payload_type = serializers.CharField(source="payload_list.payload_type.name", allow_null=True)


class AttachedIOV(PayloadIOVDocument, CutsDocument):
    """An attached payload IOV, and the changes of the other IOVs in its list.

    If it is `unchanged`, the payload was valid in the whole interval already, and the document is that of the existing IOV.
    """

    unchanged = serializers.BooleanField()


class PayloadInput(Input):
    """The members of a payload."""

    payload_url = PayloadURLField()
    checksum = TextField(max_length=TEXT_LENGTH, allow_blank=True)
    size = NumberField(default=0)
    revision = RevisionField(source="extra", default=None)


class PayloadIOVInput(PayloadInput):
    """A new payload IOV. Without `major_iov_end` and `minor_iov_end`, its end is open, and so it is if both are
    9223372036854775807. One of them alone is an error.
    """

    major_iov = NumberField()
    minor_iov = NumberField()
    major_iov_end = NumberField(required=False)
    minor_iov_end = NumberField(required=False)

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Set both numbers of an open end."""
        given = [name for name in ("major_iov_end", "minor_iov_end") if name in attributes]
        if len(given) == 1:
            missing = "minor_iov_end" if given == ["major_iov_end"] else "major_iov_end"
            raise serializers.ValidationError({missing: "An end has two numbers, major_iov_end and minor_iov_end."})
        return {"major_iov_end": OPEN, "minor_iov_end": OPEN} | attributes


class PayloadIOVAttachInput(Input):
    """The id of a payload IOV and the name of the payload list to attach it to."""

    payload_list = TextField(max_length=LIST_NAME_LENGTH)
    piov_id = NumberField()


def _lists(selected: dict[str, str]) -> QuerySet[PayloadList]:
    """The payload lists that the filters select."""
    columns = {"payload_list": "name", "global_tag": "global_tag__name", "payload_type": "payload_type__name"}
    return PayloadList.objects.filter(**{columns[name]: value for name, value in selected.items()})


def _rows_for(selected: dict[str, str], text: str) -> QuerySet[Model]:
    """The rows from which the filters and the search select: those of all lists, if one of the lists shares rows.

    Without filters, these are the lists whose name contains the text.
    """
    lists = _lists(selected) if selected else PayloadList.objects.filter(name__icontains=text)
    is_sharing = lists.filter(base_list_id__isnull=False).exists()
    return ListedPayloadIOV.objects.all() if is_sharing else PayloadIOV.objects.all()


def _count_iovs(selected: dict[str, str]) -> int:
    """The number of IOVs that the filters select, from the counts stored in the payload lists.

    Without filters, it is that of the stored IOVs: those that lists share count once. It includes the detached ones, for which it
    counts rows.
    """
    lists = _lists(selected) if selected else PayloadList.objects.filter(base_list_id=None)
    attached = lists.aggregate(total=Sum("iov_count"))["total"] or 0
    return int(attached) + (0 if selected else PayloadIOV.objects.filter(payload_list=None).count())


PAYLOAD_IOVS = Browser(
    shape=PayloadIOVItem,
    rows=PayloadIOV.objects.all,
    rows_for=_rows_for,
    search=("payload_url", "payload_list__name"),
    sort={
        "id": "id",
        "payload_url": "payload_url",
        "checksum": "checksum",
        "size": "size",
        "comb_iov": "comb_iov",
        # By major, and of equal ones by minor, so that the index helps.
        "major_iov": "comb_iov",
        "minor_iov": "minor_iov",
        "major_iov_end": "major_iov_end",
        "minor_iov_end": "minor_iov_end",
        "payload_list": "payload_list__name",
        "global_tag": "payload_list__global_tag__name",
        "payload_type": "payload_list__payload_type__name",
        "inserted": "created",
    },
    filters={
        "payload_list": "payload_list__name",
        "global_tag": "payload_list__global_tag__name",
        "payload_type": "payload_list__payload_type__name",
    },
    count=_count_iovs,
)

DETACHED = OpenApiParameter(
    "detached", str, enum=["0", "1"], description="1: only IOVs in no payload list; without page."
)

# A string, because JavaScript would round the largest number, which stands for an open end.
DIGITS = {"type": "string", "pattern": "^[0-9]{1,19}$"}


def stream_payload_iovs(rows: QuerySet[PayloadIOV]) -> HttpResponseBase:
    """A JSON array of IOVs, ordered by id."""
    return respond(array((dump(iov),) for iov in stream_documents(PayloadIOVDocument, rows.order_by("id"))))


class PayloadIOVListView(APIView):
    """All payload IOVs, ordered by id; with `page`, one page of them. Without `page`, the response may be large.

    With `detached`, only those that are in no payload list.
    """

    known = {"GET": ("payload_type",)}

    @extend_schema(
        summary="List payload IOVs",
        parameters=[*PAYLOAD_IOVS.parameters(), DETACHED],
        responses=PAYLOAD_IOVS.list_or_page(PayloadIOVDocument),
        examples=[
            response_example([PAYLOAD_IOV]),
            response_example(page_of(PAYLOAD_IOV_OF_TAG, 100), "With page=1"),
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if PAYLOAD_IOVS.wants_page(request.query_params):
            if "detached" in request.query_params:
                raise invalid_field("detached", "detached and page must not be given together.")
            return Response(PAYLOAD_IOVS.page(request.query_params))
        detached = parse_flag("detached", request.query_params.get("detached"))
        return stream_payload_iovs(
            PayloadIOV.objects.filter(payload_list=None) if detached else PayloadIOV.objects.all()
        )

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
    def post(self, request: Request) -> HttpResponse:
        """Create a payload IOV. It is in no payload list until it is attached to one. Without an end, it is open."""
        service = partial(payload_iovs.create_payload_iov, values=read_body(request, PayloadIOVInput))
        return respond_to_write(request, service, PayloadIOVDocument)


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


class PayloadIOVAttachView(APIView):
    """Attach a payload IOV to a payload list. If it is in another list, it is detached from there first.

    The payload becomes valid inside its interval; outside of it nothing changes. Other IOVs in the interval are
    trimmed, moved, split or detached, and the response lists them. If the IOV is in this list already, or if the same payload is
    valid in the whole interval, nothing changes, and the response has the existing IOV.

    If the tag is not unlocked, the IOV must not overlap existing ones, with one exception: if the last IOV of the list
    is open, an open IOV may start after its start. In continuous mode, an end with the largest minor number counts as open
    here. Otherwise the response is 409. It is also 409 if the tag is frozen, or if the IOV is in another list whose tag is not
    unlocked.
    """

    @extend_schema(
        summary="Attach a payload IOV to a payload list",
        request=PayloadIOVAttachInput,
        responses=AttachedIOV,
        examples=[request_example({"payload_list": "Pixel_Alignment_1", "piov_id": 10})],
    )
    def put(self, request: Request) -> HttpResponse:
        body = read_body(request, PayloadIOVAttachInput)
        service = partial(payload_iovs.attach_payload_iov, payload_list=body["payload_list"], iov_id=body["piov_id"])

        def document(attachment: payload_iovs.Attachment) -> Document:
            found = document_of(PayloadIOVDocument, attachment.iov) | cuts_document(attachment.cuts)
            return found | {"unchanged": attachment.is_unchanged}

        return respond_to_write(request, service, document)


class PayloadIOVDeleteView(OptionalBodyView):
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
    ) -> HttpResponse:
        start = parse_moment(("major", "minor"), (major, minor))
        end = END_OF_TIME if major_end is None else parse_moment(("major_end", "minor_end"), (major_end, minor_end))
        service = partial(
            payload_iovs.delete_payload_iov, global_tag=global_tag, payload_type=payload_type, start=start, end=end
        )
        detail = f"Payload IOV from {start} to {end} of {payload_type} in {global_tag} deleted."
        return respond_to_write(request, service, lambda _: {"detail": detail})
