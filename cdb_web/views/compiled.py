"""The compiled lists that this host has of a global tag."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from cdb_rest.access.authentication import principal_of
from cdb_rest.compiled import demand
from cdb_rest.compiled.pack import readable_packs
from cdb_rest.compiled.state import read_state
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_web.page import form_page, show
from cdb_web.permissions import may


@form_page
def compiled(request: HttpRequest, name: str) -> HttpResponse:
    """How many payload lists of a tag this host has compiled, and a form that asks its compiler for the others."""
    state = read_state(name)
    if state is None:
        raise GlobalTagNotFoundError(name)
    missing = len(CompiledTag(state, readable_packs()).missing)
    is_asked = request.method == "POST"
    if is_asked:
        principal_of(request.META).require(Role.MANAGER, name)
        # The compiler takes a tag with missing lists first.
        demand.append({name: (0, max(missing, 1))})
    values = {
        "name": name,
        "total": len(state.ids),
        "missing": missing,
        "compiled": len(state.ids) - missing,
        "is_off": not settings.CDB_COMPILED_BYTES,
        "is_asked": is_asked,
        "may_ask": may(request, Role.MANAGER, name),
    }
    return show(request, "compiled.html", values)
