"""What every write takes from its request besides its values: who asks, why, and whether it was asked before."""

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
from cdb_rest.observe.exchange import exchange_of
from cdb_rest.parsing.fields import Input, TextField, read_value
from cdb_rest.services.kept_answers import answer_once

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
    """Why a change is made."""

    comment = TextField(max_length=COMMENT_LENGTH, allow_blank=True, default="")


def read_origin(request: Request) -> Origin:
    """Who asks: the authenticated subject, else the client's address. Why: `comment` of the body, else a header.

    Raises `InvalidInputError` for a comment that is no text or too long, and for several in one request.
    """
    user = request.user
    exchange = exchange_of(request.META)
    if user is not None and user.is_authenticated:
        exchange.actor = str(user)
    comment = _comment_in_body(request)
    if comment is None:
        # HTTP headers come as bytes that WSGI shows as Latin-1; clients send UTF-8.
        comment = request.headers.get(COMMENT_HEADER, "").encode("latin-1").decode("utf-8", "replace")
    return Origin(exchange.actor[:TEXT_LENGTH], read_value({"comment": comment}, CommentInput)["comment"])


def _comment_in_body(request: Request) -> Any:
    """The comment of the body, or of the rows of the body; None where there is none, or no body that can be read."""
    try:
        # More than the object that the framework's types promise.
        body: Any = request.data
    except APIException:
        # Routes that need no body take any.
        return None
    rows = body if isinstance(body, list) else [body]
    comments = [row["comment"] for row in rows if isinstance(row, dict) and row.get("comment") is not None]
    if any(comment != comments[0] for comment in comments):
        message = "All rows of a request have one comment."
        raise InvalidInputError(message, {"comment": [message]})
    return comments[0] if comments else None


def answer_write(request: Request, make: Callable[[], Any]) -> HttpResponse:
    """The answer that `make` gives, as JSON; to a repeated request with the same idempotency key the first answer again.

    Raises `InvalidInputError` for an unusable key, and `KeyReusedError`.
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
    return _respond(answer_once(key=key, request_digest=digest, make=lambda: dump(make()).decode()))


def _respond(content: bytes | str) -> HttpResponse:
    return HttpResponse(content, content_type="application/json")
