"""Hot reads in the views, for requests that the WSGI shortcut leaves to Django."""

from django.http import HttpResponse
from rest_framework.request import Request

from cdb_rest.http import hot_reads
from cdb_rest.http.caching import not_modified
from cdb_rest.routes import Hot


def respond_hot(request: Request, kind: Hot, name: str = "") -> HttpResponse:
    """The response to a hot read. `name` is that of the tag or setting. Raises the errors of `hot_reads.respond`."""
    status, headers, body = hot_reads.respond(kind, name, request.META)
    return HttpResponse(body, status=status, headers=headers) if body else not_modified(headers)
