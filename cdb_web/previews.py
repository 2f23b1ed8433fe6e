"""Forms that show what a write would change for readers before they store it."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from cdb_rest.analysis.difference import Comparison
from cdb_rest.rules.errors import CdbError, InvalidInputError, TagChangedError
from cdb_rest.writes.previews import preview
from cdb_web.net_effect import net_effect
from cdb_web.page import problem_of, show
from cdb_web.writes import as_previewed, dry_run_origin, newest_revision, origin_of

# A write service that changes one global tag with the argument `origin`, and records at most one change of it.
WriteService = Callable[..., object]


def preview_and_store(
    request: HttpRequest,
    template: str,
    values: dict[str, Any],
    write: Callable[[], tuple[str, WriteService]],
    *,
    check: Callable[[], None] = lambda: None,
) -> HttpResponse:
    """The page of a form. Its first POST shows what the write would change, and one with the field `planned` stores it.

    `write` reads the form, and returns the name of the tag and the service. `check` raises `InvalidInputError` unless the form
    may be stored. The template gets the result of the service as `plan`, and the values of `net_effect.html`. After the write,
    the page of the change follows, or the history if nothing changed.
    """
    values |= {"values": request.POST}
    if request.method != "POST":
        return show(request, template, values)
    problem: dict[str, Any] = {}
    status = 200
    try:
        tag, service = write()
        if "planned" in request.POST:
            try:
                check()
                origin = origin_of(request)
                as_previewed(request, tag, lambda: service(origin=origin))
                return to_change(request, tag)
            except (InvalidInputError, TagChangedError) as error:
                # With the preview for the present state.
                problem, status = problem_of(error)
        found = previewed(request, tag, service, lambda plan, _: {"plan": plan})
        return show(request, template, values | found | problem, status=status)
    except CdbError as error:
        problem, status = problem_of(error)
        return show(request, template, values | problem, status=status)


def previewed(
    request: HttpRequest, tag: str, service: WriteService, inspect: Callable[[Any, Comparison], dict[str, Any]]
) -> dict[str, Any]:
    """The values of `net_effect.html` for a write, those that `inspect` returns for its result, and `planned`."""
    # The revision is read first: if the tag changes now, nothing is stored.
    planned, origin = newest_revision(tag), dry_run_origin(request)
    return {"planned": planned} | preview(
        tag,
        lambda: service(origin=origin),
        lambda result, comparison: net_effect(comparison) | inspect(result, comparison),
    )


def to_change(request: HttpRequest, tag: str) -> HttpResponse:
    """The redirect to the change that was made since the preview, or to the history if nothing changed."""
    revision = newest_revision(tag)
    if str(revision) == request.POST.get("planned"):
        return HttpResponseRedirect(reverse("web:history", args=[tag]), status=303)
    return HttpResponseRedirect(reverse("web:change", args=[tag, revision]) + "?new", status=303)
