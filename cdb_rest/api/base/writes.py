"""Parts of requests and responses that writes have in common.

All writes read their origin from the request. Only insertions and reversions accept an idempotency key (`respond_to_write`).
"""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.json import dump
from cdb_rest.parsing.fields import Input, TextField, read_value
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.names import COMMENT_LENGTH, TEXT_LENGTH
from cdb_rest.writes.transactions import respond_once

COMMENT_HEADER = "CDB-Comment"
KEY_HEADER = "Idempotency-Key"
KEY = re.compile(rf"[!-~]{{1,{TEXT_LENGTH}}}", re.ASCII)

WRITE_HEADERS = [
    OpenApiParameter(
        KEY_HEADER,
        str,
        OpenApiParameter.HEADER,
        description="A new UUID. Within `CDB_IDEMPOTENCY_HOURS`, a request that is sent again with it gets the first response, "
        "and nothing is stored twice.",
    ),
    OpenApiParameter(
        COMMENT_HEADER, str, OpenApiParameter.HEADER, description="Why the change is made, for the change log."
    ),
]


class CommentInput(Input):
    """The comment of a change."""

    comment = TextField(max_length=COMMENT_LENGTH, allow_blank=True, default="")


def read_origin(request: Request) -> Origin:
    """The origin of a write: the actor, the comment, and the principal, whose permissions the services check.

    The actor is the name of the principal, which is the client's address if the client is unknown. It is cut after 255
    characters. The comment is the member `comment` of the body or of its rows. If no such member exists, or all are
    null, it is the header `CDB-Comment`. If the header does not exist either, it is empty.

    Raises `InvalidInputError` if the comment is not text or is longer than `COMMENT_LENGTH`, or if rows have different
    comments. Raises the errors of `principal_of`.
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
        raise invalid_field("comment", "comment must be the same in all rows of a request.")
    return comments[0] if comments else None


def respond_to_write(request: Request, make: Callable[[], Any]) -> HttpResponse:
    """Call `make`, and return its result as a JSON response.

    If the request has an idempotency key, the response is stored in the transaction of the write. For
    `CDB_IDEMPOTENCY_HOURS`, a repeated request of the same actor with this key gets that response, and `make` is not
    called. All unknown clients count as one actor. If `make` raises, nothing is stored.

    With a key, `make` is called again after a conflict, so its only effects must be changes of the database.

    Raises `InvalidInputError` for an invalid key, `KeyReusedError` if the key was used with another request,
    `DatabaseUnavailableError` if another request with this key does not end in time, `ConcurrentChangeError` if the record
    expires during the call, and the errors of `make`.
    """
    key = request.headers.get(KEY_HEADER)
    if key is None:
        return _respond(dump(make()))
    if not KEY.fullmatch(key):
        raise invalid_field(
            KEY_HEADER, f"{KEY_HEADER} must be 1 to {TEXT_LENGTH} visible ASCII characters, such as a UUID (got {key})."
        )
    route, in_path = type(request.parser_context["view"]).__name__, request.parser_context["kwargs"]
    content = orjson.dumps([route, request.data, *([in_path] if in_path else [])], option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(content).hexdigest()
    principal = principal_of(request.META)
    # An unknown client may repeat a request from another address.
    actor = principal.name[:TEXT_LENGTH] if principal.method else ""
    return _respond(respond_once(actor=actor, key=key, request_digest=digest, execute=lambda: dump(make()).decode()))


def _respond(content: bytes | str) -> HttpResponse:
    return HttpResponse(content, content_type="application/json")
