"""Parts that all forms that write have in common: the origin of a write, confirmations, unchanged tags."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from django.http import HttpRequest

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.writes import WriteInput
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.parsing.fields import read_value
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError, TagChangedError, invalid_field
from cdb_rest.rules.names import TEXT_LENGTH
from cdb_rest.writes.locks import lock_global_tag
from cdb_rest.writes.transactions import write

Result = TypeVar("Result")


def origin_of(request: HttpRequest) -> Origin:
    """The origin of the write that a form asks for, with its `comment`. Raises `InvalidInputError` as for the API."""
    comment = read_value({"comment": request.POST.get("comment", "").strip()}, WriteInput)["comment"]
    return replace(dry_run_origin(request), comment=comment)


def dry_run_origin(request: HttpRequest) -> Origin:
    """The origin of a dry run, which has no comment."""
    principal = principal_of(request.META)
    return Origin(principal.name[:TEXT_LENGTH], principal=principal)


def find_tag(name: str) -> GlobalTag:
    """The global tag with its status. Raises `GlobalTagNotFoundError`."""
    tag = GlobalTag.objects.select_related("status").filter(name=name).first()
    if tag is None:
        raise GlobalTagNotFoundError(name)
    return tag


def newest_revision(name: str) -> int:
    """The newest revision in the change log of a tag, to which the preview of a write belongs; 0 if there is none."""
    newest = GlobalTagChange.objects.filter(global_tag=name).order_by("-revision").values_list("revision", flat=True)
    return newest.first() or 0


@write
def as_previewed(request: HttpRequest, name: str, service: Callable[[], Result]) -> Result:
    """Call a write service, if the tag still has the revision of the preview, the field `planned` of the form.

    Raises `InvalidInputError` if the field is missing or no number, `TagChangedError`, and the errors of the service.
    """
    planned = parse_number("planned", request.POST.get("planned"))
    lock_global_tag(name)
    newer = GlobalTagChange.objects.filter(global_tag=name, revision__gt=planned).order_by("revision").first()
    if newer is not None:
        raise TagChangedError(
            f"Global tag {name} has changed since revision {planned} (revision {newer.revision}: {newer.action} by "
            f"{newer.actor}). Nothing was stored; check the new preview."
        )
    return service()


def check_confirmed(request: HttpRequest, name: str, kind: str = "global tag") -> None:
    """Raise `InvalidInputError` unless the person has typed the name of the tag, or of another kind of object."""
    # A browser sends no line breaks of a field, and people copy a name with spaces around it.
    if request.POST.get("confirm", "").split() != name.split():
        raise invalid_field("confirm", f"Type the name of the {kind}, {name}, to confirm.")
