"""Change log: who changed a global tag, when and how. The log of a deleted tag is kept."""

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.api import streams
from cdb_rest.api.browsers import CHANGES
from cdb_rest.api.descriptions import in_path, response_example
from cdb_rest.api.documents import ChangeDocument
from cdb_rest.api.examples import CHANGE, page_of
from cdb_rest.api.inputs import StrictView
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.errors import ChangeNotFoundError, GlobalTagNotFoundError

TAG = in_path("name", "Name of the global tag.", "tiny")


class ChangeListView(StrictView):
    """The changes of a global tag, newest first, page by page."""

    query = CHANGES.parameters()

    @extend_schema(
        summary="List the changes of a global tag",
        parameters=[TAG],
        responses=CHANGES.page_shape(),
        examples=[response_example(page_of(CHANGE, 1))],
    )
    def get(self, request: Request, name: str) -> Response:
        changes = GlobalTagChange.objects.filter(global_tag=name)
        _check_existed(name)
        return Response(CHANGES.page(request.query_params, changes))


class ChangeView(StrictView):
    """One change of a global tag, with what it removed and what it added. It is streamed and may have any size."""

    @extend_schema(
        summary="Get a change of a global tag",
        parameters=[TAG, in_path("revision", "Revision of the tag after the change.", 1)],
        responses=ChangeDocument,
        examples=[response_example(CHANGE | {"before": {}, "after": {"status": "unlocked"}})],
    )
    def get(self, request: Request, name: str, revision: str) -> HttpResponseBase:
        number = parse_number("revision", revision)

        def missing() -> ChangeNotFoundError:
            _check_existed(name)
            return ChangeNotFoundError(f"of global tag {name} with revision {number}")

        return streams.change(GlobalTagChange.objects.filter(global_tag=name, revision=number), missing)


def _check_existed(name: str) -> None:
    """Raise `GlobalTagNotFoundError` unless a tag of this name exists or has a change log."""
    existed = GlobalTagChange.objects.filter(global_tag=name).exists() or GlobalTag.objects.filter(name=name).exists()
    if not existed:
        raise GlobalTagNotFoundError(name)
