"""Atom feeds of the newest changes, of one global tag and of all."""

import re

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import format_html_join

from cdb_rest.http.caching import digest_of, unchanged
from cdb_rest.models import GlobalTagChange
from cdb_web.page import page
from cdb_web.templatetags.cdb_web import action_text
from cdb_web.views.changes import ALL_CHANGES, changes_of

ENTRIES = 50
# What a document of XML 1.0 cannot have, even escaped.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@page
def feed(request: HttpRequest, name: str | None = None) -> HttpResponse:
    """The newest changes of a tag, or of all tags."""
    title, path, changes = "Changes of all global tags", reverse("web:log"), ALL_CHANGES.all()
    if name is not None:
        title, path, changes = f"Changes of {name}", reverse("web:history", args=[name]), changes_of(name)
    found = list(changes[:ENTRIES])
    # A change is never changed, and no other one ever has its revision.
    etag = f'"{digest_of("atom", request.build_absolute_uri(), [(one.global_tag, one.revision) for one in found])}"'
    if response := unchanged(request, etag):
        return response
    address = request.build_absolute_uri(request.path)
    made = Atom1Feed(_xml(title), request.build_absolute_uri(path), None, feed_url=address, feed_guid=address)
    for change in found:
        link = request.build_absolute_uri(reverse("web:change", args=[change.global_tag, change.revision]))
        made.add_item(
            _xml(f"{change.global_tag} {change.revision}: {_action(change)}"),
            link,
            _summary(change),
            author_name=_xml(change.actor) or "cdb",
            pubdate=change.created,
            updateddate=change.created,
            unique_id=link,
        )
    return HttpResponse(made.writeString("utf-8"), content_type=made.content_type, headers={"ETag": etag})


def _action(change: GlobalTagChange) -> str:
    return f"{action_text(change)}: {change.status}" if change.action == "status" else action_text(change)


def _summary(change: GlobalTagChange) -> str:
    """The comment, the numbers of IOVs, and who has requested the change, in HTML."""
    before, after, source = change.payload_iovs_before, change.payload_iovs_after, change.source or {}
    parts = [
        _xml(change.comment),
        f"IOVs: {before} removed, {after} added" if before or after else "",
        _xml(f"Request {source['request']} by {source['requested_by']}") if "request" in source else "",
    ]
    return format_html_join("", "<p>{}</p>", ([part] for part in parts if part))


def _xml(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
