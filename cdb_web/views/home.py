"""The home page."""

import orjson
from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from cdb_rest.api.views.index import SERVICE, prefers_html
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.moment import Interval, Mode, Moment
from cdb_rest.lookup.model import LookupQuery, Row
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.parsing.parameters import parse_moment
from cdb_web import inputs
from cdb_web.page import page, show

# The newest changes on the home page.
NEWEST = 10


@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """The home page for browsers; links to the parts of the service, as JSON, for other clients."""
    response = _home(request) if prefers_html(request) else JsonResponse(SERVICE)
    patch_vary_headers(response, ["Accept"])
    return response


@page
def _home(request: HttpRequest) -> HttpResponse:
    query = request.GET
    values = {name: inputs.text(query, name) for name in ("tag", "major", "minor", "rev")}
    found = None
    if values["tag"] and values["major"]:
        found = _look_up(values["tag"], values["major"], values["minor"] or "0", inputs.revision(query))
    tags = GlobalTag.objects.select_related("status").order_by("-updated")
    return show(
        request,
        "home.html",
        {
            "values": values,
            "found": found,
            "statuses": GlobalTag.objects.values("status__name").annotate(tags=Count("id")).order_by("status__name"),
            "names": tags.values_list("name", flat=True)[:200],
            "newest": GlobalTagChange.objects.defer("logged_before", "logged_after").order_by("-number")[:NEWEST],
        },
    )


def _look_up(tag: str, major: str, minor: str, as_of: AsOf | None) -> dict[str, object]:
    moment = parse_moment(("major", "minor"), (major, minor))
    mode = Mode(settings.CDB_IOV_MODE)
    query = LookupQuery(tag=tag, moment=moment, only_valid=False, as_objects=False, mode=mode, as_of=as_of)
    result = look_up_here(query)
    rows = [Row(*row) for row in orjson.loads(result.body or b"[]")]
    return {"rows": [(row, _is_valid(row, moment, mode)) for row in rows], "moment": moment}


def _is_valid(row: Row, moment: Moment, mode: Mode) -> bool:
    return Interval.from_wire(row.since, row.until, mode).contains(moment)
