"""The routes of the pages, relative to the root of the service. Each path also works with a slash at its end."""

import re

from django.urls import URLPattern, path, register_converter
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from cdb_web.page import View
from cdb_web.views import (
    access,
    changes,
    compare,
    feeds,
    find,
    home,
    insert,
    lists,
    manage,
    notices,
    payloads,
    requests,
    tags,
    timeline,
)

# The bytes of a name that are escaped in a path: all but those of the URL standard that need no escape, and ~ itself.
# A dot is escaped only at the beginning, because servers remove the segments "." and "..".
ESCAPED_BYTES = re.compile(rb"^\.|[^A-Za-z0-9_.-]")
ESCAPES = re.compile("(?:~[0-9A-F]{2})+")


class NameConverter:
    """A name as a segment of a path, each special byte as ~ and its two hexadecimal digits; an empty name is ~ alone.

    Names of an adopted database may have slashes and other special characters. Percent-encoding does not suffice for
    them: servers decode it before routing, and change the path then.
    """

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """The name for a segment. Raises `ValueError` if escaped bytes are not UTF-8, or NUL, so that no route matches."""
        if value == "~":
            return ""
        name = ESCAPES.sub(lambda run: bytes.fromhex(run[0].replace("~", "")).decode(), value)
        if "\0" in name:
            raise ValueError("NUL cannot be stored, so no object has this name.")
        return name

    def to_url(self, name: str) -> str:
        """The segment for a name."""
        return ESCAPED_BYTES.sub(lambda found: b"~%02X" % found[0][0], name.encode()).decode() or "~"


register_converter(NameConverter, "name")

ROUTES: list[tuple[str, View, str]] = [
    ("tags", tags.tags, "tags"),
    ("tags/<name:name>", tags.tag, "tag"),
    ("tags/<name:name>/lanes", timeline.lanes, "lanes"),
    ("tags/<name:name>/rows", timeline.rows, "rows"),
    ("tags/<name:name>/lists/<name:payload_type>", tags.payload_list, "list"),
    ("tags/<name:name>/why", payloads.why, "why"),
    ("tags/<name:name>/history", changes.history, "history"),
    ("history.atom", feeds.feed, "feed"),
    ("tags/<name:name>/history.atom", feeds.feed, "tag_feed"),
    ("tags/<name:name>/history/<int:revision>", changes.change, "change"),
    ("tags/<name:name>/insert", insert.insert, "insert"),
    ("tags/<name:name>/manage", manage.manage, "manage"),
    ("tags/<name:name>/revert/<int:revision>", changes.revert, "revert"),
    ("tags/<name:name>/undo/<int:revision>", changes.undo, "undo"),
    ("log", changes.log, "log"),
    ("requests", requests.requests, "requests"),
    ("requests/<int:number>", requests.change_request, "request"),
    ("tags/<name:name>/coverage", compare.coverage, "coverage"),
    ("tags/<name:name>/access", access.tag_access, "tag_access"),
    ("access", access.access, "access"),
    ("tokens", access.tokens, "tokens"),
    ("subscriptions", notices.subscriptions, "subscriptions"),
    ("find", find.find, "find"),
    ("find/files", find.files, "find_files"),
    ("login", access.log_in, "log_in"),
    ("tags/<name:name>/compiled", manage.compiled, "compiled"),
    ("words", home.words, "words"),
    ("types", manage.types, "types"),
    ("types/<name:name>", manage.payload_type, "type"),
    ("statuses", manage.statuses, "statuses"),
    ("logout", access.log_out, "log_out"),
    ("new", manage.new, "new"),
    ("compare", compare.compare, "compare"),
    ("affected", compare.affected, "affected"),
    ("payloads", payloads.payloads, "payloads"),
    ("detached", lists.detached, "detached"),
    ("detached/lists/<name:list_name>", lists.attach_list, "attach_list"),
    ("detached/iovs/<int:iov_id>", lists.attach_iov, "attach_iov"),
    ("tags/<name:name>/lists/<name:payload_type>/delete", lists.delete, "delete"),
]


app_name = "web"
urlpatterns: list[URLPattern] = [
    path("", csrf_exempt(home.home), name="home"),
    *(path(route, view, name=name) for route, view, name in ROUTES),
    *(path(f"{route}/", view) for route, view, _ in ROUTES),
    # The address of nopayloaddb's web interface.
    path("api/cdb_rest/web", RedirectView.as_view(url="/")),
    path("api/cdb_rest/web/", RedirectView.as_view(url="/")),
]
