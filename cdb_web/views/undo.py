"""The forms that undo a change of a global tag, and revert the tag, with a preview of what will be valid."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from cdb_rest.analysis.difference import Comparison
from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.access import Origin, Role
from cdb_rest.rules.errors import CdbError, ChangeNotFoundError, InvalidInputError, TagChangedError, quoted
from cdb_rest.writes.previews import preview
from cdb_rest.writes.reverting import Reversion, revert_global_tag
from cdb_rest.writes.undoing import undo_change
from cdb_web.net_effect import net_effect
from cdb_web.page import form_page, problem_of, show
from cdb_web.permissions import may
from cdb_web.writes import as_previewed, check_confirmed, dry_run_origin, find_tag, newest_revision, origin_of

Write = Callable[[Origin], Reversion]


@form_page
def undo(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """A form that undoes a change. The page shows what would change; a POST stores it."""
    found = _change(name, revision)
    values: dict[str, object] = {
        "change": found,
        "may_write": may(request, Role.CONTRIBUTOR, name),
        "role": Role.CONTRIBUTOR,
    }
    return _respond(
        request, name, revision, values, lambda origin: undo_change(name=name, revision=revision, origin=origin)
    )


@form_page
def revert(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """A form that reverts a tag to a revision. The page shows what would change; a POST stores it."""
    _change(name, revision)
    values: dict[str, object] = {"may_write": may(request, Role.MANAGER, name), "role": Role.MANAGER}
    return _respond(
        request, name, revision, values, lambda origin: revert_global_tag(name=name, revision=revision, origin=origin)
    )


def _change(name: str, revision: int) -> GlobalTagChange:
    found = GlobalTagChange.objects.filter(global_tag=name, revision=revision).first()
    if found is None:
        raise ChangeNotFoundError(described=f"of global tag {quoted(name)} with revision {revision}")
    return found


def _respond(request: HttpRequest, name: str, revision: int, values: dict[str, object], write: Write) -> HttpResponse:
    values |= {"name": name, "revision": revision, "tag": find_tag(name), "values": request.POST}
    if request.method != "POST":
        return show(request, "revert.html", values)
    try:
        if "planned" not in request.POST:
            return show(request, "revert.html", values | _preview(request, name, write))
        try:
            if "change" not in values:
                check_confirmed(request, name)
            origin = origin_of(request)
            stored = as_previewed(request, name, lambda: write(origin))
        except (InvalidInputError, TagChangedError) as error:
            # With the preview again.
            problem, status = problem_of(error)
            return show(request, "revert.html", values | _preview(request, name, write) | problem, status=status)
    except CdbError as error:
        problem, status = problem_of(error)
        return show(request, "revert.html", values | problem, status=status)
    if stored.revision is None:
        return HttpResponseRedirect(reverse("web:history", args=[name]), status=303)
    return HttpResponseRedirect(reverse("web:change", args=[name, stored.revision]) + "?new", status=303)


def _preview(request: HttpRequest, name: str, write: Write) -> dict[str, object]:
    # The revision is read first: if the tag changes now, the second POST is refused.
    planned = newest_revision(name)

    def inspect(found: Reversion, comparison: Comparison) -> dict[str, object]:
        lists = [one for one in found.types if one.detached or one.attached]
        return {"plan": found, "planned": planned, "lists": lists} | net_effect(comparison)

    return preview(name, lambda: write(dry_run_origin(request)), inspect)
