"""The search of the header: global tags, payload types, payload files, people and comments with a text."""

from typing import Any

from django.db.models import Case, Count, Max, QuerySet, When
from django.http import HttpRequest, HttpResponse

from cdb_rest import named_sql
from cdb_rest.analysis.uses import escaped
from cdb_rest.api.global_tags import GLOBAL_TAGS
from cdb_rest.api.payload_types import PAYLOAD_TYPES
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadType
from cdb_web import inputs
from cdb_web.page import page, show, show_query

FILES = named_sql.load("payload_files")
# It takes three times as long.
FILES_IN_ANY_CASE = FILES.replace(" LIKE ", " ILIKE ")
MAX_SHOWN = 20
MAX_FILES = 50
# Most payload files have a shorter text.
MIN_LENGTH = 3


@page
def find(request: HttpRequest) -> HttpResponse:
    """What has the text `q` in its name, author or description, in any case. Payload files follow, because they take longer."""
    text = inputs.text(request.GET, "q")
    values: dict[str, Any] = {"find": text, "max_shown": MAX_SHOWN, "may_have_files": len(text) >= MIN_LENGTH}
    if text:
        words, changes = {"search": text}, GlobalTagChange.objects.order_by("-number")
        tags = GLOBAL_TAGS.select(words, GlobalTag.objects.select_related("status"))
        values |= {
            "tags": _first(tags, text, "-updated"),
            "types": _first(PAYLOAD_TYPES.select(words, PayloadType.objects.all()), text, "name"),
            "people": _people(text),
            "comments": changes.filter(comment__icontains=text)[: MAX_SHOWN + 1],
        }
    return show(request, "find.html", values)


@page
def files(request: HttpRequest) -> HttpResponse:
    """The payload files with the text `q` in their URL or checksum, now or in the past; in any case if there are no others."""
    text = inputs.text(request.GET, "q")
    values: dict[str, Any] = {"find": text, "min_length": MIN_LENGTH, "files": [], "max_files": MAX_FILES}
    if len(text) >= MIN_LENGTH:
        parameters = {"pattern": f"%{escaped(text)}%", "most": MAX_FILES + 1}
        rows = fetch_all(FILES, parameters) or fetch_all(FILES_IN_ANY_CASE, parameters)
        values |= {"files": rows[:MAX_FILES], "has_more": len(rows) > MAX_FILES}
    return show_query(request, "find_files.html", values, lambda _: {})


def _first(found: QuerySet[Any], text: str, order: str) -> QuerySet[Any]:
    """The first objects, one more than are shown; the one with exactly this name is the first of them."""
    return found.order_by(Case(When(name=text, then=0), default=1), order)[: MAX_SHOWN + 1]


def _people(text: str) -> list[dict[str, Any]]:
    """The actors of changes whose names have the text, those first who have made the newest changes."""
    found = GlobalTagChange.objects.filter(actor__icontains=text).values("actor")
    return list(found.annotate(changes=Count("id"), newest=Max("created")).order_by("-newest")[: MAX_SHOWN + 1])
