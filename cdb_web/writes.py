"""What the forms that write have in common: the origin of a write, confirmations, previews of what changes for readers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from cdb_rest.access.authentication import principal_of
from cdb_rest.analysis.difference import Comparison
from cdb_rest.api.base.writes import WriteInput
from cdb_rest.api.proposals import read_proposal
from cdb_rest.history.changes import newest_revision
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadList, RequestKind
from cdb_rest.parsing.fields import read_value
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import (
    CdbError,
    GlobalTagNotFoundError,
    PayloadListNotFoundError,
    TagChangedError,
    existing,
    invalid_field,
    quoted,
)
from cdb_rest.rules.names import TEXT_LENGTH
from cdb_rest.writes.locks import lock_global_tag
from cdb_rest.writes.previews import preview
from cdb_rest.writes.requests import lock_requester, make_request
from cdb_rest.writes.transactions import write as write_service
from cdb_web.net_effect import net_effect
from cdb_web.page import is_known, store_or_show

Result = TypeVar("Result")


def origin_of(request: HttpRequest) -> Origin:
    """The origin of the write that a form asks for, with its `comment`. Raises `InvalidInputError` as for the API."""
    comment = read_value({"comment": request.POST.get("comment", "").strip()}, WriteInput)["comment"]
    principal = principal_of(request.META)
    return Origin(principal.name[:TEXT_LENGTH], comment=comment, principal=principal)


def find_tag(name: str) -> GlobalTag:
    """The global tag with its status. Raises `GlobalTagNotFoundError`."""
    return existing(GlobalTag.objects.select_related("status").filter(name=name).first(), GlobalTagNotFoundError(name))


def find_list(name: str, payload_type: str) -> PayloadList:
    """The payload list that a global tag has of a type. Raises `PayloadListNotFoundError`."""
    found = PayloadList.objects.filter(global_tag__name=name, payload_type__name=payload_type).first()
    if found is None:
        raise PayloadListNotFoundError(described=f"of type {quoted(payload_type)} in global tag {quoted(name)}")
    return found


@write_service
def as_previewed(request: HttpRequest, name: str, service: Callable[[], Result]) -> Result:
    """Call a write service, if the tag still has the revision of the preview, the field `planned` of the form.

    Raises `InvalidInputError` if the field is missing or no number, `TagChangedError`, and the errors of the service.
    """
    planned = parse_number("planned", request.POST.get("planned"))
    lock_global_tag(name)
    if newest_revision(name) != planned:
        newer = GlobalTagChange.objects.filter(global_tag=name, revision__gt=planned).order_by("revision").first()
        by = f" (revision {newer.revision}: {newer.action} by {newer.actor})" if newer else ""
        raise TagChangedError(
            f"Global tag {name} has changed since revision {planned}{by}. Nothing was stored; check the new preview."
        )
    return service()


def check_confirmed(request: HttpRequest, name: str, kind: str = "global tag") -> dict[str, Any]:
    """Raise `InvalidInputError` unless the person has typed the name of the tag, or of another kind of object."""
    # A browser sends no line breaks of a field, and people copy a name with spaces around it.
    if request.POST.get("confirm", "").split() != name.split():
        raise invalid_field("confirm", f"Type the name of the {kind}, {name}, to confirm.")
    return {}


# A write service that changes one global tag with the argument `origin`, and records at most one change of it.
WriteService = Callable[..., object]


@dataclass(frozen=True)
class Steps:
    """A write whose form stores something else than its preview shows.

    `preview` is called with the argument `origin`, and rolled back. `store` also gets the arguments that `check` returns, and
    returns the address of the page that follows.
    """

    preview: WriteService
    store: Callable[..., str]


def is_proposal(request: HttpRequest, *, may_write: bool) -> bool:
    """Whether a form makes a request instead of a write: a known reader may not write, or asks for it."""
    asks = "propose" in request.POST or request.POST.get("again") == "propose"
    return is_known(request) and (asks or not may_write)


def proposing(kind: RequestKind, tag: str, document: dict[str, Any], service: WriteService | None = None) -> Steps:
    """The steps of a form that makes a request for a write. Raises the errors of `read_proposal`.

    `service` makes the same write, with the numbers of lines that the reader sees.
    """
    proposal = read_proposal(kind, tag, document)
    if service is not None:
        proposal = replace(proposal, service=lambda origin, _: service(origin=origin))

    def store(*, origin: Origin, **_: Any) -> str:
        found = make_request(proposal=proposal, document=document, reason=origin.comment, origin=origin)
        return reverse("web:request", args=[found.id]) + "?new"

    return Steps(lambda origin: proposal.apply(), store)


def preview_and_store(
    request: HttpRequest,
    template: str,
    values: dict[str, Any],
    write: Callable[[], tuple[str, WriteService | Steps]],
    *,
    check: Callable[[], dict[str, Any]] = dict,
    inspect: Callable[[Any, Comparison], dict[str, Any]] = lambda plan, _: {"plan": plan},
) -> HttpResponse:
    """The page of a form. Its first POST shows what the write would change, and one with the field `planned` stores it.

    `write` reads the form, and returns the name of the tag and the service, or its `Steps`. `check` raises `InvalidInputError`
    unless the form may be stored, and returns further arguments of the service. The template gets the values of
    `net_effect.html`, and those that `inspect` returns for the result of the service. After the write, the page of the change
    follows, or the history if nothing changed. A form with the field `again` is previewed again.
    """

    def store() -> str | None:
        tag, service = write()
        origin = origin_of(request)
        try:
            if "planned" in request.POST and "again" not in request.POST:
                arguments = check()
                if isinstance(service, Steps):
                    return service.store(origin=origin, **arguments)
                as_previewed(request, tag, lambda: service(origin=origin, **arguments))
                return _address_of_change(request, tag)
        except CdbError:
            # With the preview for the present state.
            show_preview(tag, service, origin)
            raise
        show_preview(tag, service, origin)
        return None

    def show_preview(tag: str, service: WriteService | Steps, origin: Origin) -> None:
        @write_service
        def shown() -> dict[str, Any]:
            if isinstance(service, Steps):
                lock_requester(origin.principal.identity)
            make = service.preview if isinstance(service, Steps) else service
            # The revision is read first: if the tag changes now, nothing is stored.
            planned = newest_revision(tag)
            found = preview(
                tag,
                lambda: make(origin=origin),
                lambda result, comparison: net_effect(comparison) | inspect(result, comparison),
            )
            return found | {"planned": planned}

        values.update(shown())

    return store_or_show(request, template, values, store)


def _address_of_change(request: HttpRequest, tag: str) -> str:
    """The page of the change that was made since the preview, or the history if nothing changed."""
    revision = newest_revision(tag)
    if str(revision) == request.POST.get("planned"):
        return reverse("web:history", args=[tag])
    return reverse("web:change", args=[tag, revision]) + "?new"
