"""The check of permissions for reads if `CDB_ANONYMOUS_READS` is off: for every route, in this place only."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.authorization import REFUSED, is_closed_read
from cdb_rest.rules.access import Role


class ReadAccess:
    """A WSGI application that refuses reads without the role reader, through `refuse`, and passes all others to `application`."""

    def __init__(self, application: WSGIApplication, refuse: WSGIApplication) -> None:
        self._application = application
        self._refuse = refuse

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_closed_read(environ["REQUEST_METHOD"], environ["PATH_INFO"]):
            try:
                principal_of(environ).require(Role.READER)
            except Exception as error:
                environ[REFUSED] = error
                return self._refuse(environ, start_response)
        return self._application(environ, start_response)
