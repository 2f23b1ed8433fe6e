"""The routes of the pages, relative to the root of the service. Each path also works with a slash at its end."""

from django.http import HttpRequest, HttpResponseRedirect
from django.urls import URLPattern, path, register_converter
from django.views.decorators.csrf import csrf_exempt

from cdb_web.page import View
from cdb_web.views import (
    changes,
    compare,
    coverage,
    home,
    insert,
    manage,
    new,
    payload_list,
    payloads,
    tag,
    tags,
    timeline,
    why,
)


class NameConverter:
    """A name as a segment of a path. Servers decode %2F before routing, so a slash, which names of an adopted database may have,
    is encoded twice, and so is a percent sign.
    """

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """The name for a segment."""
        return value.replace("%2F", "/").replace("%25", "%")

    def to_url(self, name: str) -> str:
        """The segment for a name."""
        return name.replace("%", "%25").replace("/", "%2F")


register_converter(NameConverter, "name")

ROUTES: list[tuple[str, View, str]] = [
    ("tags", tags.tags, "tags"),
    ("tags/<name:name>", tag.tag, "tag"),
    ("tags/<name:name>/lanes", timeline.lanes, "lanes"),
    ("tags/<name:name>/rows", timeline.rows, "rows"),
    ("tags/<name:name>/lists/<name:payload_type>", payload_list.payload_list, "list"),
    ("tags/<name:name>/why", why.why, "why"),
    ("tags/<name:name>/history", changes.history, "history"),
    ("tags/<name:name>/history/<int:revision>", changes.change, "change"),
    ("tags/<name:name>/insert", insert.insert, "insert"),
    ("tags/<name:name>/manage", manage.manage, "manage"),
    ("tags/<name:name>/revert/<int:revision>", manage.revert, "revert"),
    ("tags/<name:name>/coverage", coverage.coverage, "coverage"),
    ("logout", home.log_out, "log_out"),
    ("new", new.new, "new"),
    ("compare", compare.compare, "compare"),
    ("payloads", payloads.payloads, "payloads"),
    ("detached", payloads.detached, "detached"),
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
