"""The view of the lookup."""

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.api.fields import parse_flag, parse_moment
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import OPEN, Mode
from cdb_rest.lookup import lateral
from cdb_rest.lookup.question import COLUMNS, Question

NUMBER = {"type": "integer", "minimum": 0, "maximum": OPEN}


def _required(name: str, kind: type | dict, description: str, example: str | int) -> OpenApiParameter:
    return OpenApiParameter(
        name, kind, required=True, description=description, examples=[OpenApiExample("in the scenario tiny", example)]
    )


QUERY = [
    _required("gtName", str, "Name of the global tag.", "tiny"),
    _required("majorIOV", NUMBER, "First half of the moment.", 5),
    _required("minorIOV", NUMBER, "Second half of the moment.", 0),
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
lookup_schema = extend_schema(
    parameters=QUERY,
    responses={200: {"type": "array", "items": ROW, "description": f"Columns: {', '.join(COLUMNS)}."}},
)


class LookupView(APIView):
    """Which payload each payload type has in a global tag at a moment."""

    @lookup_schema
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(lateral.answer(read_question(request.query_params)), content_type="application/json")


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
