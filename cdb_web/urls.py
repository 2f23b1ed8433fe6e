"""The routes of the pages, relative to the root of the service. Each path also works with a slash at its end."""

from django.http import HttpRequest, HttpResponseRedirect
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt

from cdb_web.page import View
from cdb_web.views import changes, compare, coverage, home, insert, manage, payload_list, payloads, tag, tags, timeline

ROUTES: list[tuple[str, View, str]] = [
    ("tags", tags.tags, "tags"),
    ("tags/<str:name>", tag.tag, "tag"),
    ("tags/<str:name>/lanes", timeline.lanes, "lanes"),
    ("tags/<str:name>/rows", timeline.rows, "rows"),
    ("tags/<str:name>/lists/<str:payload_type>", payload_list.payload_list, "list"),
    ("tags/<str:name>/history", changes.history, "history"),
    ("tags/<str:name>/history/<int:revision>", changes.change, "change"),
    ("tags/<str:name>/insert", insert.insert, "insert"),
    ("tags/<str:name>/manage", manage.manage, "manage"),
    ("tags/<str:name>/revert/<int:revision>", manage.revert, "revert"),
    ("tags/<str:name>/coverage", coverage.coverage, "coverage"),
    ("compare", compare.compare, "compare"),
    ("payloads", payloads.payloads, "payloads"),
]


@csrf_exempt
def to_home(_request: HttpRequest) -> HttpResponseRedirect:
    """A redirect from the address of nopayloaddb's web interface."""
    return HttpResponseRedirect("/")


app_name = "web"
urlpatterns: list[URLPattern] = [
    path("", csrf_exempt(home.home), name="home"),
    *(path(route, view, name=name) for route, view, name in ROUTES),
    *(path(f"{route}/", view) for route, view, _ in ROUTES),
    path("api/cdb_rest/web", to_home),
    path("api/cdb_rest/web/", to_home),
]
