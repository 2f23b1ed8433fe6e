"""The home page."""

from collections.abc import Mapping

import orjson
from django.conf import settings
from django.contrib.auth import logout
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from cdb_rest.api.service import SERVICE, prefers_html, ready
from cdb_rest.lookup.model import LookupQuery, Row
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.parsing.parameters import parse_moment
from cdb_rest.rules.moment import Interval, Mode, Moment
from cdb_web import inputs
from cdb_web.page import form_page, newest_names, or_default, page, show

# The newest changes on the home page.
NEWEST = 10


@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """The home page for browsers; links to the parts of the service, as JSON, for other clients."""
    # The health check has a timeout of its own, so it is not in the snapshot of the page.
    response = _home(request, orjson.loads(ready(request).content)) if prefers_html(request) else JsonResponse(SERVICE)
    patch_vary_headers(response, ["Accept"])
    return response


@page
def _home(request: HttpRequest, health: dict[str, str]) -> HttpResponse:
    fields = {name: inputs.text(request.GET, name) for name in ("tag", "major", "minor", "rev")}
    found, status = or_default(fields, lambda values: {"found": _look_up(values)})
    values = {
        "values": fields,
        "statuses": GlobalTag.objects.values("status__name").annotate(tags=Count("id")).order_by("status__name"),
        "names": newest_names(),
        "health": health,
        "newest": GlobalTagChange.objects.order_by("-number")[:NEWEST],
    }
    return show(request, "home.html", values | found, status=status)


def _look_up(values: Mapping[str, str]) -> dict[str, object] | None:
    if not values.get("tag") or not values["major"]:
        return None
    moment = parse_moment(("Major", "Minor"), (values["major"], values["minor"] or "0"))
    mode = Mode(settings.CDB_IOV_MODE)
    as_of = inputs.revision(values)
    query = LookupQuery(tag=values["tag"], moment=moment, only_valid=False, as_objects=False, mode=mode, as_of=as_of)
    result = look_up_here(query)
    rows = [Row(*row) for row in orjson.loads(result.body or b"[]")]
    shown = [(row, _is_valid(row, moment, mode)) for row in rows]
    return {"rows": shown, "moment": moment, "any_ended": not all(is_valid for _, is_valid in shown)}


def _is_valid(row: Row, moment: Moment, mode: Mode) -> bool:
    return Interval.from_wire(row.since, row.until, mode).contains(moment)


@form_page
def log_out(request: HttpRequest) -> HttpResponse:
    """A form that ends the session of this service. A session at an identity provider continues."""
    if request.method != "POST":
        return show(request, "log_out.html", {})
    logout(request)
    return HttpResponseRedirect("/", status=303)
