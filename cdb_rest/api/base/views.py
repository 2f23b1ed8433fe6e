"""What views share: a base class that rejects unknown query parameters, the validation of rows, and reads without Django."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.api.base.authorization import is_write
from cdb_rest.api.base.conversion import Shape
from cdb_rest.http import hot_reads
from cdb_rest.http.caching import not_modified
from cdb_rest.http.security import SAFE_METHODS
from cdb_rest.parsing.fields import Input, check_optional_body, plain_errors
from cdb_rest.parsing.parameters import refused_names, unknown_names
from cdb_rest.routes import Hot
from cdb_rest.rules.errors import TooManyRowsError, UnknownParameterError
from cdb_rest.writes.rows import ROWS_NAMED, wrong_rows


class Statement(Shape):
    """The response to a delete."""

    detail = serializers.CharField()


ROWS_VALIDATED_AT_ONCE = 1000


def read_rows(data: list[Any], form_class: type[Input], *, strict: bool) -> list[dict[str, Any]]:
    """The validated rows, by the serializer `form_class`.

    Raises `TooManyRowsError`, or `InvalidInputError`, whose `rows` describes the first invalid ones.
    """
    if len(data) > settings.CDB_MAX_BULK_ROWS:
        raise TooManyRowsError(
            f"The body has {len(data)} rows; at most {settings.CDB_MAX_BULK_ROWS} are accepted at once."
        )
    rows: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    # In parts: after the first part with enough invalid rows, the rest need not be validated.
    for first in range(0, len(data), ROWS_VALIDATED_AT_ONCE):
        form = form_class(data=data[first : first + ROWS_VALIDATED_AT_ONCE], many=True, context={"strict": strict})
        if form.is_valid():
            rows += (dict(row) for row in form.validated_data)
            continue
        wrong += ({"row": first + row} | plain_errors(errors) for row, errors in sorted(form.errors.items()))
        if len(wrong) >= ROWS_NAMED:
            break
    if wrong:
        raise wrong_rows(wrong, len(data))
    return rows


class OptionalBodyView(APIView):
    """A view whose writes need no body. The body may be an object with a comment."""

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        """Check the permissions, then the body, before the method of the view runs.

        Raises the errors of `RoutePermission`, or `InvalidInputError`.
        """
        super().initial(request, *arguments, **named)
        check_optional_body(request)


def check_names(view: type[APIView], request: HttpRequest) -> None:
    """Check the names of the query parameters of a request to a view that is not a `StrictView`.

    The attribute `known` of a view has, by method, the names in `SIGNIFICANT` that have a meaning in the query string. By
    default, a write knows `dry_run`, and a read none of them. Raises `UnknownParameterError` for those of `refused_names`.
    """
    if issubclass(view, StrictView):
        return
    method = "GET" if request.method in SAFE_METHODS else request.method
    known = getattr(view, "known", {}).get(method, () if method == "GET" else ("dry_run",))
    wrong = refused_names(request.GET, known)
    if wrong:
        raise UnknownParameterError(" ".join(text for [text] in wrong.values()), wrong)


class StrictView(APIView):
    """A view that rejects unknown query parameters and unknown members of bodies; `query` declares the known parameters.

    A write knows `dry_run`, too.

    A view that has a path of nopayloaddb must not be strict, because existing clients may send unknown names. Such a view
    ignores them on all of its paths, except for those that `check_names` and `read_body` refuse.
    """

    is_strict = True
    query: Sequence[OpenApiParameter] = ()

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        """Check the permissions, then the query string, before the method of the view runs.

        Raises the errors of `RoutePermission`, or `UnknownParameterError`.
        """
        super().initial(request, *arguments, **named)
        known = [item.name for item in self.query]
        if is_write(request.method or "", request.path):
            known.append("dry_run")
        unknown = unknown_names(request.query_params, known)
        if unknown:
            raise UnknownParameterError(" ".join(text for [text] in unknown.values()), unknown)


def respond_hot(request: Request, kind: Hot, name: str = "") -> HttpResponse:
    """The response to a hot read. `name` is that of the tag or setting. Raises the errors of `hot_reads.respond`."""
    status, headers, body = hot_reads.respond(kind, name, request.META)
    return HttpResponse(body, status=status, headers=headers) if body else not_modified(headers)
