"""What all writes read from a request: its origin (actor and comment) and its idempotency key."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from cdb_rest.api.json import dump
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.names import COMMENT_LENGTH, TEXT_LENGTH
from cdb_rest.domain.origin import Origin
from cdb_rest.identity.authentication import principal_of
from cdb_rest.parsing.fields import Input, TextField, read_value
from cdb_rest.services.idempotency import respond_once

COMMENT_HEADER = "CDB-Comment"
KEY_HEADER = "Idempotency-Key"
KEY = re.compile(rf"[!-~]{{1,{TEXT_LENGTH}}}", re.ASCII)


WRITE_HEADERS = [
    OpenApiParameter(
        KEY_HEADER,
        str,
        OpenApiParameter.HEADER,
        description="A new UUID. A request that is sent again with it gets the first response; nothing is inserted twice.",
    ),
    OpenApiParameter(
        COMMENT_HEADER, str, OpenApiParameter.HEADER, description="Why the change is made, for the change log."
    ),
]


class CommentInput(Input):
    """The comment of a change."""

    comment = TextField(max_length=COMMENT_LENGTH, allow_blank=True, default="")


def read_origin(request: Request) -> Origin:
    """The actor and the comment of a write.

    The actor is the principal, which for an unknown client has its address as its name. The comment is `comment` in the
    body, else the header `CDB-Comment`.

    Raises `InvalidInputError` if the comment is not text or too long, or if rows have different ones.
    """
    principal = principal_of(request.META)
    comment = _comment_in_body(request)
    if comment is None:
        # WSGI decodes headers as Latin-1, but clients send UTF-8.
        comment = request.headers.get(COMMENT_HEADER, "").encode("latin-1").decode("utf-8", "replace")
    return Origin(principal.name[:TEXT_LENGTH], read_value({"comment": comment}, CommentInput)["comment"], principal)


def _comment_in_body(request: Request) -> Any:
    """The comment in the body, or in its rows; None if there is none, or if the body cannot be parsed."""
    try:
        # It may also be an array, which the type stubs leave out.
        body: Any = request.data
    except APIException:
        # Routes without a body ignore it.
        return None
    rows = body if isinstance(body, list) else [body]
    comments = [row["comment"] for row in rows if isinstance(row, dict) and row.get("comment") is not None]
    if any(comment != comments[0] for comment in comments):
        message = "All rows of a request have one comment."
        raise InvalidInputError(message, {"comment": [message]})
    return comments[0] if comments else None


def respond_to_write(request: Request, make: Callable[[], Any]) -> HttpResponse:
    """The result of `make` as a JSON response. A repeated request with the same idempotency key gets the first response.

    Raises `InvalidInputError` for an invalid key, and `KeyReusedError`.
    """
    key = request.headers.get(KEY_HEADER)
    if key is None:
        return _respond(dump(make()))
    if not KEY.fullmatch(key):
        message = f"{KEY_HEADER} must be 1 to {TEXT_LENGTH} visible ASCII characters, such as a UUID."
        raise InvalidInputError(message, {KEY_HEADER: [message]})
    route = type(request.parser_context["view"]).__name__
    content = orjson.dumps([route, request.data], option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(content).hexdigest()
    principal = principal_of(request.META)
    # An unknown client may repeat a request from another address.
    actor = principal.name[:TEXT_LENGTH] if principal.method else ""
    return _respond(respond_once(actor=actor, key=key, request_digest=digest, execute=lambda: dump(make()).decode()))


def _respond(content: bytes | str) -> HttpResponse:
    return HttpResponse(content, content_type="application/json")
