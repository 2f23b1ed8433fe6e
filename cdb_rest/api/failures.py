"""Exceptions that no view caught, such as those of the admin's pages, as records."""

from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware


class FailureMiddleware(RequestMiddleware):
    """django-structlog's record `request_failed` for each exception that only Django sees, with its traceback.

    Its other records, when a request started and finished, are left out: those of all requests are written by
    `cdb_rest/observe/records.py`, whether Django has anything to do with them or not.
    """

    def prepare(self, request: HttpRequest) -> None:
        """Bind nothing: every record knows its request already."""

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        """Leave it to whoever sees the end of the answer's body."""
