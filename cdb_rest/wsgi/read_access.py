"""The check of permissions for reads if `CDB_ANONYMOUS_READS` is off, also for requests that do not reach the views."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.api import errors
from cdb_rest.api.authorization import is_public
from cdb_rest.domain.access import Role
from cdb_rest.http.security import SAFE_METHODS
from cdb_rest.identity.authentication import principal_of
from cdb_rest.observe.request_context import context_of
from cdb_rest.wsgi.fast_lookup import send


class ReadAccess:
    """A WSGI application that refuses reads below `prefix` without the role reader, and marks the responses as private.

    A shared cache must not keep the responses: it would send them to clients without the role. Writes and public routes
    are passed on without a check; the views check writes.
    """

    def __init__(self, application: WSGIApplication, prefix: str) -> None:
        self._application = application
        self._prefix = prefix

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] not in SAFE_METHODS or not path.startswith(self._prefix) or is_public(path):
            return self._application(environ, start_response)
        try:
            principal_of(environ).require(Role.READER)
        except Exception as error:
            response = errors.handle(error, {})
            return send(
                start_response, context_of(environ), response.status_code, dict(response.items()), response.content
            )

        def start(status: str, headers: list[tuple[str, str]], *error: object) -> object:
            return start_response(status, [_private(*header) for header in headers], *error)  # type: ignore[arg-type]

        return self._application(environ, start)  # type: ignore[arg-type]


def _private(name: str, value: str) -> tuple[str, str]:
    """The same header, but a `Cache-Control` without `no-store` has `private` instead of `public`."""
    if name != "Cache-Control" or "no-store" in value:
        return name, value
    return name, ", ".join(["private", *(part for part in value.split(", ") if part != "public")])
