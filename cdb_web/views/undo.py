"""The forms that undo a change of a global tag, and revert the tag, with a preview of what will be valid."""

from functools import partial

from django.http import HttpRequest, HttpResponse

from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import ChangeNotFoundError, quoted
from cdb_rest.writes.reverting import revert_global_tag
from cdb_rest.writes.undoing import undo_change
from cdb_web.page import form_page
from cdb_web.permissions import may
from cdb_web.previews import preview_and_store
from cdb_web.writes import check_confirmed, find_tag


@form_page
def undo(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """A form that undoes a change. The page shows what would change; a POST stores it."""
    values = _values(request, name, revision, Role.CONTRIBUTOR)
    service = partial(undo_change, name=name, revision=revision)
    return preview_and_store(request, "undo.html", values, lambda: (name, service))


@form_page
def revert(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """A form that reverts a tag to a revision. The page shows what would change; a POST stores it."""
    values = _values(request, name, revision, Role.MANAGER)
    service = partial(revert_global_tag, name=name, revision=revision)
    return preview_and_store(
        request, "revert.html", values, lambda: (name, service), check=lambda: check_confirmed(request, name)
    )


def _values(request: HttpRequest, name: str, revision: int, role: Role) -> dict[str, object]:
    change = GlobalTagChange.objects.filter(global_tag=name, revision=revision).first()
    if change is None:
        raise ChangeNotFoundError(described=f"of global tag {quoted(name)} with revision {revision}")
    values = {"name": name, "revision": revision, "change": change, "tag": find_tag(name)}
    return values | {"may_write": may(request, role, name), "role": role}
