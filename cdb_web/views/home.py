"""The home page."""

import orjson
from django.contrib.auth import logout
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from cdb_rest.api.service import SERVICE, prefers_html, ready
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_web import inputs
from cdb_web.lookups import look_up
from cdb_web.page import form_page, newest_names, or_default, page, show

# The newest changes on the home page.
NEWEST = 10
FIELDS = ("tag", "major", "minor", "rev", "at", "strict", "moments")


@require_safe
def home(request: HttpRequest) -> HttpResponseBase:
    """The home page for browsers; links to the parts of the service, as JSON, for other clients."""
    # The health check has a timeout of its own, so it is not in the snapshot of the page.
    response = _home(request, orjson.loads(ready(request).content)) if prefers_html(request) else JsonResponse(SERVICE)
    patch_vary_headers(response, ["Accept"])
    return response


@page
def _home(request: HttpRequest, health: dict[str, str]) -> HttpResponse:
    query = request.GET
    fields = {name: inputs.text(query, name) for name in FIELDS}
    bases = [base for base in query.getlist("base") if base.strip()]
    found, status = or_default(fields, lambda values: {"found": look_up(values, bases)})
    values = {
        "values": fields,
        "bases": bases,
        "tags": [fields["tag"], *bases],
        "revisions": [fields["rev"], *([""] * len(bases))] if fields["rev"] else "",
        "has_more": bool(bases or any(fields[name] for name in ("rev", "at", "strict", "moments"))),
        "statuses": GlobalTag.objects.values("status__name").annotate(tags=Count("id")).order_by("status__name"),
        "names": newest_names(),
        "health": health,
        "newest": GlobalTagChange.objects.order_by("-number")[:NEWEST],
    }
    return show(request, "home.html", values | found, status=status)


@page
def words(request: HttpRequest) -> HttpResponse:
    """The words that the pages use, each with its meaning."""
    return show(request, "words.html", {})


@form_page
def log_out(request: HttpRequest) -> HttpResponse:
    """A form that ends the session of this service. A session at an identity provider continues."""
    if request.method != "POST":
        return show(request, "log_out.html", {})
    logout(request)
    return HttpResponseRedirect("/", status=303)
