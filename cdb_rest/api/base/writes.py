"""Parts of requests and responses that writes have in common: origin, dry run and idempotency key."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import orjson
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.conversion import Document, Shape, document_of
from cdb_rest.api.base.descriptions import COMMENT_HEADER, KEY_HEADER
from cdb_rest.api.base.json import dump
from cdb_rest.parsing.fields import Input, TextField, read_value
from cdb_rest.parsing.parameters import parse_flag
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import invalid_field, quoted
from cdb_rest.rules.names import COMMENT_LENGTH, TEXT_LENGTH
from cdb_rest.writes.transactions import respond_once, roll_back

KEY = re.compile(rf"[!-~]{{1,{TEXT_LENGTH}}}", re.ASCII)


class WriteInput(Input):
    """The members that the body of every write may have."""

    comment = TextField(max_length=COMMENT_LENGTH, allow_blank=True, default="")
    dry_run = serializers.BooleanField(default=False)


def read_origin(request: Request) -> Origin:
    """The origin of a write: the actor, the comment, and the principal, whose permissions the services check.

    The actor is the name of the principal, which is the client's address if the client is unknown. It is cut after 255
    characters. The comment is the member `comment` of the body or of its rows. If no such member exists, or all are
    null, it is the header `CDB-Comment`. If the header does not exist either, it is empty.

    Raises `InvalidInputError` if the comment is not text or is longer than `COMMENT_LENGTH`, or if rows have different
    comments. Raises the errors of `principal_of`.
    """
    principal = principal_of(request.META)
    comment = optional_member(request, "comment")
    if comment is None:
        # WSGI decodes headers as Latin-1, but clients send UTF-8.
        comment = request.headers.get(COMMENT_HEADER, "").encode("latin-1").decode("utf-8", "replace")
    return Origin(principal.name[:TEXT_LENGTH], read_value({"comment": comment}, WriteInput)["comment"], principal)


def is_dry_run(request: Request) -> bool:
    """Whether a write must change nothing: `dry_run` is on in the query string, or true in the body or in its rows.

    Raises `InvalidInputError`, also if rows differ in it.
    """
    in_query = parse_flag("dry_run", request.query_params.get("dry_run"))
    in_body: bool = read_value({"dry_run": optional_member(request, "dry_run")}, WriteInput)["dry_run"]
    return in_query or in_body


def optional_member(request: Request, name: str) -> Any:
    """A member of the body, or of its rows; None if there is none, or if the body cannot be parsed.

    Raises `InvalidInputError` if rows differ in it.
    """
    body = _body(request)
    rows = body if isinstance(body, list) else [body]
    values = [row[name] for row in rows if isinstance(row, dict) and row.get(name) is not None]
    if any(value != values[0] for value in values):
        raise invalid_field(name, f"{name} must be the same in all rows of a request.")
    return values[0] if values else None


def respond_to_write(
    request: Request, service: Callable[..., Any], document: type[Shape] | Callable[[Any], Document]
) -> HttpResponse:
    """Call a write service with the argument `origin`, and respond with the document of its result.

    `document` is the class of the document, or a function that makes it from the result. In a dry run, what the service has
    changed is rolled back.

    The response to a dry run has the member `dry_run`. The id of an object that would be created is never used. The idempotency
    key has no effect on it.

    If the request has an idempotency key, the response is stored in the transaction of the write. For
    `CDB_IDEMPOTENCY_HOURS`, a repeated request of the same actor with this key gets that response, and the service
    is not called. All unknown clients count as one actor. If the service raises an error, nothing is stored.

    With a key, the service is called again after a conflict, so its only effects must be changes of the database.

    Raises `InvalidInputError` for an invalid key, `KeyReusedError` if the key was used with another request,
    `DatabaseUnavailableError` if another request with this key does not end in time, `ConcurrentChangeError` if the record
    expires during the call, and the errors of `read_origin` and of the service.
    """
    origin = read_origin(request)

    def make() -> Document:
        found = service(origin=origin)
        return document_of(document, found) if isinstance(document, type) else document(found)

    if is_dry_run(request):
        return _respond(dump(_tried(roll_back(make))))
    key = request.headers.get(KEY_HEADER)
    if key is None:
        return _respond(dump(make()))
    if not KEY.fullmatch(key):
        raise invalid_field(
            KEY_HEADER,
            f"{KEY_HEADER} must be 1 to {TEXT_LENGTH} visible ASCII characters, such as a UUID (got {quoted(key)}).",
        )
    route, in_path = type(request.parser_context["view"]).__name__, request.parser_context["kwargs"]
    query = {name: request.query_params.getlist(name) for name in request.query_params}
    # A file is represented by its digest.
    content = orjson.dumps(
        [route, in_path, query, _body(request)],
        default=lambda file: hashlib.sha256(file).hexdigest(),
        option=orjson.OPT_SORT_KEYS,
    )
    digest = hashlib.sha256(content).hexdigest()
    principal = principal_of(request.META)
    # An unknown client may repeat a request from another address.
    actor = principal.name[:TEXT_LENGTH] if principal.method else ""
    return _respond(respond_once(actor=actor, key=key, request_digest=digest, execute=lambda: dump(make()).decode()))


def _tried(found: Document) -> Document:
    """The response to a dry run."""
    if "detail" in found and not found.get("dry_run"):
        found["detail"] = f"Dry run, nothing was changed: {found['detail']}"
    return found | {"dry_run": True}


def _body(request: Request) -> Any:
    """The parsed body; None if it cannot be parsed, because routes without a body ignore it."""
    try:
        return request.data
    except APIException:
        return None


def _respond(content: bytes | str) -> HttpResponse:
    return HttpResponse(content, content_type="application/json")
