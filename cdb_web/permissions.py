"""What the reader of a page may do, so that a page shows only the forms that would be accepted."""

from django.http import HttpRequest

from cdb_rest.access.authentication import principal_of
from cdb_rest.rules.access import Object, Role


def may(request: HttpRequest, role: Role, tag: Object = None, payload_type: Object = None) -> bool:
    """Whether the reader has a role for a global tag and a payload type, as in `Principal.permission`."""
    return principal_of(request.META).permission(role, tag, payload_type) is not None
