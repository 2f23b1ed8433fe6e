"""What the reader of a page may do, so that a page shows only the forms that would be accepted."""

from django.http import HttpRequest

from cdb_rest.access.authentication import principal_of
from cdb_rest.rules.access import All, Object, Principal, Role


def may(request: HttpRequest, role: Role, tag: Object = None, payload_type: Object = None) -> bool:
    """Whether the reader has a role for a global tag and a payload type, as in `Principal.permission`."""
    return principal_of(request.META).permission(role, tag, payload_type) is not None


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
