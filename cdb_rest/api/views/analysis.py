"""Analysis: the coverage of global tags, the uses of payloads, and the reasons for the results of lookups."""

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from cdb_rest.analysis.coverage import Selection
from cdb_rest.analysis.uses import Payload
from cdb_rest.api import analysis
from cdb_rest.api.analysis_documents import CoverageDocument, ExplanationDocument, UseDocument
from cdb_rest.api.descriptions import AS_OF, NUMBER, TEXT, base_parameter, in_path, required, response_example
from cdb_rest.api.examples import PAYLOAD_IOV
from cdb_rest.api.inputs import StrictView
from cdb_rest.api.windows import WINDOW, read_payload_type, read_window
from cdb_rest.http.caching import Resource, conditional_get
from cdb_rest.http.lookup import TagParameters, read_tags
from cdb_rest.parsing.parameters import parse_flag, parse_moment
from cdb_rest.rules.errors import invalid_field


class CoverageView(StrictView):
    """The gaps of a global tag: intervals of the window in which a strict lookup has no IOV, by payload type.

    `complete` says that there are none. `required` are names of payload types, separated by commas: a type that the tag
    does not have is reported as well. Without `since` and `until`, the window is the whole axis of moments.

    With `base`, the tag and its bases are several tags as in a lookup. `base` may be repeated, and `rev` is given for each tag.
    """

    repeatable = ("base", "rev")
    query = [
        *WINDOW,
        base_parameter("base"),
        OpenApiParameter("required", str, description="Payload types that the tag must have, separated by commas."),
        *AS_OF,
    ]

    @extend_schema(
        summary="Get the coverage of a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny")],
        responses=CoverageDocument,
        examples=[
            response_example(
                {
                    "payload_types": [
                        {
                            "payload_type": "Pixel_Alignment",
                            "has_payload_list": True,
                            "covered": 1.0,
                            "first_start": [5, 0],
                            "last_end": [6, 0],
                            "gaps": [],
                        }
                    ],
                    "complete": True,
                },
                "With since=5,0&until=6,0&required=Pixel_Alignment",
            )
        ],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        query = request.query_params
        tags = read_tags(dict(query.lists()), TagParameters("base"), name)
        types = [one for one in query.get("required", "").split(",") if one]
        selection = Selection(tags, read_payload_type(query), read_window(query), types)
        window = selection.window
        parts = (selection.payload_type, *window.start, *window.end, types, settings.CDB_IOV_MODE)
        resource = Resource.tags("coverage", tags, *parts)
        not_modified = conditional_get(request.META, resource)
        return not_modified or analysis.covered(request, selection, resource.digest)


class UsesView(StrictView):
    """The global tags, payload lists and intervals in which payloads are used. Exactly one parameter says which payloads.

    With `removed=1`, uses of the past are included: `removed` is the change of the tag that ended the use.
    """

    query = [
        OpenApiParameter("payload_url", str, description="The URL of the payload."),
        OpenApiParameter("url_prefix", str, description="The beginning of the URLs of payloads."),
        OpenApiParameter("checksum", str, description="The checksum of the payload."),
        OpenApiParameter("removed", str, enum=["0", "1"], description="1: also uses of the past."),
    ]

    @extend_schema(
        summary="List the uses of a payload",
        responses=UseDocument(many=True),
        examples=[
            response_example(
                {
                    "global_tag": "tiny",
                    "payload_type": "Pixel_Alignment",
                    "payload_list": "Pixel_Alignment_1",
                    "payload_url": PAYLOAD_IOV["payload_url"],
                    "removed": None,
                },
                "With url_prefix=Pixel_Alignment",
            )
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        query = request.query_params
        given = {name: query[name] for name in ("payload_url", "url_prefix", "checksum") if query.get(name)}
        if len(given) != 1:
            raise invalid_field(
                "payload_url",
                "Exactly one of payload_url, url_prefix and checksum is required, and it must not be empty.",
            )
        payload = Payload(given.get("payload_url"), given.get("url_prefix"), given.get("checksum"))
        return analysis.used(payload, with_removed=parse_flag("removed", query.get("removed")))


class ExplanationView(StrictView):
    """Why a strict lookup has this result: the row, the change that put it there, and what it replaced; by payload type.

    `reason` is `valid`, `ended` (the IOV with the latest start has ended), `not_started` (no IOV starts at the moment or
    before) or `no_payload_list`. If there is no valid IOV now, but there was one before, `change` removed it.

    `gtName` may be given several times, as in a lookup. Then a payload type has one element for each tag, in their order, up to
    the first tag in which an IOV is valid.
    """

    repeatable = ("gtName", "rev")
    query = [
        required("gtName", TEXT, "Name of the global tag.", "tiny"),
        required("majorIOV", NUMBER, "Major part of the moment.", 5),
        required("minorIOV", NUMBER, "Minor part of the moment.", 0),
        OpenApiParameter("payload_type", str, description="Only this payload type."),
        *AS_OF,
    ]

    @extend_schema(
        summary="Get the reasons for the result of a lookup",
        responses=ExplanationDocument(many=True),
        examples=[
            response_example(
                {
                    "global_tag": "tiny",
                    "payload_type": "Pixel_Alignment",
                    "payload_list": "Pixel_Alignment_1",
                    "reason": "valid",
                    "replaced": None,
                }
            )
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        query = request.query_params
        tags, payload_type = read_tags(dict(query.lists())), read_payload_type(query)
        moment = parse_moment(("majorIOV", "minorIOV"), (query.get("majorIOV"), query.get("minorIOV")))
        resource = Resource.tags("explain", tags, *moment, payload_type, settings.CDB_IOV_MODE)
        not_modified = conditional_get(request.META, resource)
        return not_modified or analysis.explained(request, tags, moment, payload_type, resource.digest)
