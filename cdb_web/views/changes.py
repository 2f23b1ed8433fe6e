"""The history of a global tag, the log of all tags, single changes, and the forms that undo or revert them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.contents import Contents, read_contents
from cdb_rest.analysis.difference import Comparison
from cdb_rest.api.changes import CHANGES, select_changes
from cdb_rest.history.changes import lists_around, previous_change
from cdb_rest.models import ChangeAction, GlobalTag, GlobalTagChange, PayloadType, RequestKind
from cdb_rest.rules.access import Role
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import ChangeNotFoundError, GlobalTagNotFoundError, RevisionPrunedError, quoted
from cdb_rest.rules.moment import EVERYTHING
from cdb_rest.writes.reverting import revert_global_tag
from cdb_rest.writes.undoing import INSTEAD, undo_change
from cdb_web import inputs
from cdb_web.net_effect import net_effect
from cdb_web.page import form_page, is_known, may, page, show, show_query
from cdb_web.writes import Steps, WriteService, check_confirmed, find_tag, is_proposal, preview_and_store, proposing

PAGE_SIZE = 50
FILTERS = ("action", "payload_type", "actor", "since", "until", "search")
ALL_CHANGES = GlobalTagChange.objects.order_by("-number", "-id")
# Changes that made or deleted a whole tag, which has no state before or after.
WHOLE = (ChangeAction.CREATE, ChangeAction.CLONE, ChangeAction.SEED, ChangeAction.ADOPT, ChangeAction.DELETE)


@page
def history(request: HttpRequest, name: str) -> HttpResponse:
    """The changes of a tag, newest first, page by page; two of them can be compared."""
    return _list(request, "history.html", changes_of(name), {"name": name})


def changes_of(name: str) -> QuerySet[GlobalTagChange]:
    """The changes of a tag, newest first. Raises `GlobalTagNotFoundError` if there was no tag of this name."""
    changes = GlobalTagChange.objects.filter(global_tag=name).order_by("-revision")
    if not changes.exists() and not GlobalTag.objects.filter(name=name).exists():
        raise GlobalTagNotFoundError(name)
    return changes


@page
def log(request: HttpRequest) -> HttpResponse:
    """The changes of all tags, newest first, page by page."""
    tag = inputs.text(request.GET, "tag")
    return _list(request, "log.html", ALL_CHANGES.filter(global_tag=tag) if tag else ALL_CHANGES.all(), {"tag": tag})


def _list(
    request: HttpRequest, template: str, changes: QuerySet[GlobalTagChange], values: dict[str, Any]
) -> HttpResponse:
    fields = {name: inputs.text(request.GET, name) for name in FILTERS}

    def select(query: Mapping[str, str]) -> dict[str, Any]:
        chosen = fields if query else {}
        found = CHANGES.select(chosen, select_changes(chosen, changes))
        return {"page": Paginator(found, PAGE_SIZE).get_page(query.get("page"))}

    fixed = {
        "filters": fields,
        "is_filtered": any(fields.values()),
        "actions": ChangeAction.choices,
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
    }
    return show_query(request, template, fixed | values, select)


@page
def change(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """One change: who, when, why, and what was valid before and after it."""
    found = _find(name, revision)
    later = GlobalTagChange.objects.filter(global_tag=name, revision__gt=revision)
    exists = found.tag_id is not None and GlobalTag.objects.filter(id=found.tag_id).exists()
    values: dict[str, object] = {
        "name": name,
        "change": found,
        "is_newest": not later.exists(),
        "is_whole": found.action in WHOLE,
        "may_undo": exists
        and found.action not in INSTEAD
        and (may(request, Role.CONTRIBUTOR, name) or is_known(request)),
    }
    try:
        values |= _effect(found)
    except RevisionPrunedError as error:
        values["pruned"] = str(error)
    return show(request, "change.html", values)


def _effect(found: GlobalTagChange) -> dict[str, object]:
    """What the change did to the status, to the payload lists, and to what is valid. Raises `RevisionPrunedError`."""
    previous = previous_change(found)
    before, after = ({one.payload_type: one.name for one in lists} for lists in lists_around(found))
    lists = [
        (payload_type, before.get(payload_type), after.get(payload_type))
        for payload_type in sorted({*before, *after})
        if before.get(payload_type) != after.get(payload_type)
    ]
    was = previous.status if previous is not None else None
    statuses = (was, found.status) if found.status != was and found.action != ChangeAction.DELETE else None
    if found.action in WHOLE:
        return {"lists": lists if len(lists) <= 50 else [], "statuses": statuses}
    return {"lists": lists, "statuses": statuses} | net_effect(
        Comparison(_contents(previous), _contents(found), EVERYTHING)
    )


def _contents(found: GlobalTagChange | None) -> Contents:
    """The contents of the tag after a change."""
    return read_contents([] if found is None else [(found.global_tag, AsOf(revision=found.revision))])


@form_page
def undo(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """A form that undoes a change, or makes a request for that. The page shows what would change; a POST stores it."""
    values = _values(request, name, revision, Role.CONTRIBUTOR)
    service = partial(undo_change, name=name, revision=revision)
    values["is_proposed"] = is_proposal(request, may_write=bool(values["may_write"]))

    def write() -> tuple[str, WriteService | Steps]:
        is_own = not values["is_proposed"]
        return name, service if is_own else proposing(RequestKind.UNDO, name, {"revision": revision})

    return preview_and_store(request, "undo.html", values, write)


@form_page
def revert(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """A form that reverts a tag to a revision. The page shows what would change; a POST stores it."""
    values = _values(request, name, revision, Role.MANAGER)
    service = partial(revert_global_tag, name=name, revision=revision)
    return preview_and_store(
        request, "revert.html", values, lambda: (name, service), check=lambda: check_confirmed(request, name)
    )


def _values(request: HttpRequest, name: str, revision: int, role: Role) -> dict[str, object]:
    values = {"name": name, "revision": revision, "change": _find(name, revision), "tag": find_tag(name)}
    return values | {"may_write": may(request, role, name), "role": role}


def _find(name: str, revision: int) -> GlobalTagChange:
    """A change. Raises `ChangeNotFoundError`."""
    found = GlobalTagChange.objects.filter(global_tag=name, revision=revision).first()
    if found is None:
        raise ChangeNotFoundError(described=f"of global tag {quoted(name)} with revision {revision}")
    return found
