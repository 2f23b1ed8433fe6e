"""What the views of all pages use: decorators with a snapshot, headers and errors, what the reader may do, and forms."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.http import urlencode
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from cdb_rest.access.authentication import KEY, SESSION, principal_of
from cdb_rest.api.base.errors import handle
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.http.security import POLICY, SAFE_METHODS
from cdb_rest.models import GlobalTag
from cdb_rest.rules.access import All, Object, Principal, Role
from cdb_rest.rules.errors import CdbError, InvalidInputError
from cdb_rest.rules.moment import Mode

# Stricter than that of the admin: no inline styles.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

View = Callable[..., HttpResponseBase]


def page(view: View) -> View:
    """Decorator for the view of a page, for GET and HEAD.

    The view reads in one snapshot of the database. An exception becomes the response of the API, which `cdb_web.error_pages`
    shows as a page.
    """
    return csrf_exempt(require_safe(_guarded(view)))


def form_page(view: View) -> View:
    """Decorator for the view of a page with a form: as `page`, and for POST, which needs the CSRF token of the form.

    A POST is not in a snapshot, because the services make their own transactions. The services check the permissions of a
    write.
    """
    return require_http_methods(["GET", "HEAD", "POST"])(_guarded(view))


def _guarded(view: View) -> View:
    @wraps(view)
    def respond(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
        if (request.encoding or "utf-8").lower() not in ("utf-8", "utf8"):
            # In another encoding, texts may have characters that the database cannot store. This also empties a form.
            request.encoding = "utf-8"
        try:
            if settings.SESSION_COOKIE_NAME in request.COOKIES:
                # For the name in the head of the page.
                principal_of(request.META)
            if any("\0" in value for values in dict(request.POST.lists()).values() for value in values):
                raise InvalidInputError("A field has the character NUL, which cannot be stored.")
            with snapshot() if request.method in SAFE_METHODS else nullcontext():
                response = view(request, *arguments, **named)
        except Exception as error:
            response = handle(error, {"request": request})
        # A browser asks again each time, and other caches store nothing: what a page shows may depend on who reads it.
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response

    return respond


def show(request: HttpRequest, template: str, values: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    """A page, from a template in `cdb_web/`."""
    principal = request.META.get(KEY)
    person = principal.name if principal and principal.method == SESSION else ""
    fixed = {
        "person": person,
        "is_known": principal is not None and is_known(request),
        "may_log_in": not person and not settings.CDB_OPEN_WRITES,
        "log_in_url": f"{reverse('web:log_in')}?{urlencode({'next': request.get_full_path()})}",
        "is_administrator": principal is not None and administers(principal),
        "contact": settings.CDB_ACCESS_CONTACT,
        "ends_are_inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
        "major_name": settings.CDB_MAJOR_NAME,
        "minor_name": settings.CDB_MINOR_NAME,
        # How a moment is written in a field.
        "pair": f"{settings.CDB_MAJOR_NAME},{settings.CDB_MINOR_NAME}",
    }
    response = render(request, f"cdb_web/{template}", fixed | dict(values), status=status)
    response[POLICY] = PAGE_POLICY
    # The middleware would make JSON of errors.
    response.is_page = True  # type: ignore[attr-defined]  # it is an attribute of the service
    return response


def may(request: HttpRequest, role: Role, tag: Object = None, payload_type: Object = None) -> bool:
    """Whether the reader has a role for a global tag and a payload type, as in `Principal.permission`."""
    return principal_of(request.META).permission(role, tag, payload_type) is not None


def is_known(request: HttpRequest) -> bool:
    """Whether the reader is a person or program, as `Principal.require_known` demands."""
    return principal_of(request.META).method not in ("", "network")


def administers(principal: Principal) -> bool:
    """Whether the principal may change rules and tokens: it has the role administrator for all tags and payload types.

    Unlike other writes, this needs a rule even if writes are open: a rule or token would outlive them.
    """
    return any(permission.covers(Role.ADMINISTRATOR, All.ALL, All.ALL) for permission in principal.permissions)


def require_administrator(request: HttpRequest) -> Principal:
    """The principal of the request. Raises an error unless it administers.

    Raises `NotPermittedError`, or `AuthenticationRequiredError` if the principal was not identified.
    """
    principal = principal_of(request.META)
    if not administers(principal):
        Principal(principal.name, principal.method, lacks="writes with the pages need a login").require(
            Role.ADMINISTRATOR, All.ALL, All.ALL
        )
    return principal


def show_query(
    request: HttpRequest,
    template: str,
    fixed: Mapping[str, Any],
    read: Callable[[Mapping[str, str]], dict[str, Any]],
    query: Mapping[str, str] | None = None,
) -> HttpResponse:
    """The page with what `read` returns for the query string, or only its result, `_result.html`, if htmx asks for it.

    If the query string is invalid, it is the page without one, and the problem, so that the form can be corrected.
    """
    status = 200
    try:
        found = read(request.GET if query is None else query)
    except CdbError as error:
        problem, status = problem_of(error)
        found = read({}) | problem
    is_part = request.headers.get("HX-Request") == "true"
    name = template.replace(".html", "_result.html") if is_part else template
    response = show(request, name, dict(fixed) | found, status=status)
    # Otherwise the Back button of a browser may show the part from its cache instead of the page.
    patch_vary_headers(response, ["HX-Request"])
    return response


def waiting(query: Mapping[str, str], sizes: Sequence[int], rows_per_second: int) -> dict[str, object]:
    """The values for `waiting.html`, for a result that takes two seconds or longer; nothing if it may be computed now.

    `sizes` are the numbers of IOVs by payload type. The page requests its result with the parameter `now`.
    """
    seconds = sum(sizes) // rows_per_second
    return {"seconds": seconds, "type_count": len(sizes)} if seconds > 1 and "now" not in query else {}


def newest_names() -> QuerySet[GlobalTag, str]:
    """The names of the global tags that were changed last, newest first, at most 200, for the suggestions of a field."""
    return GlobalTag.objects.order_by("-updated").values_list("name", flat=True)[:200]


def problem_of(error: CdbError) -> tuple[dict[str, Any], int]:
    """The values for a form that is shown again because of an error, and the status of the page.

    They are `problem`, `code`, `wrong_rows`, and `needs_login` if the person may have to log in again. Rows are counted
    from 1, while the API counts from 0. Each call counts the error in the metrics.
    """
    response = handle(error, {})
    rows = [(row["row"] + 1, row["detail"]) for row in error.rows]
    document, status = json.loads(response.content), response.status_code
    found = {"problem": document["detail"], "code": document["code"], "wrong_rows": rows, "needs_login": status == 401}
    return found, status


def store_or_show(
    request: HttpRequest, template: str, values: Mapping[str, Any], store: Callable[[], str | None]
) -> HttpResponse:
    """The page of a form. A POST calls `store`, and redirects to the address that it returns.

    If there is no address, or an error, the page shows the form, and what `store` may have added to the values.
    """
    problem: dict[str, Any] = {}
    status = 200
    if request.method == "POST":
        try:
            if address := store():
                return HttpResponseRedirect(address, status=303)
        except CdbError as error:
            problem, status = problem_of(error)
    return show(request, template, {"values": request.POST} | dict(values) | problem, status=status)
