"""What lets caches keep answers and never show an old one: how long an answer may be kept, what it is called, and requests that
name what they have.

An answer is called after the state of its tag and the question, so the name says whether it still holds, and nobody has to
make the answer to find out.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import http_date, parse_http_date_safe

from cdb_rest.domain.status import Status
from cdb_rest.lookup.queries import find_state, find_state_of_all
from cdb_rest.lookup.question import ALL_TAGS, ANYTHING, NOTHING, Known, State

# To be raised when a question on an unchanged tag gets other bytes than before: what caches have is then of no use.
FORMAT = 1
# The precondition headers of reads.
PRECONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_UNMODIFIED_SINCE")
# What a proxy or a client may name; more is ignored.
ETAG = re.compile(r'"([!#-~]{1,100})"')
ETAGS_READ = 20


def digest_of(*question: Any) -> str:
    """A short text for a question, by what decides its answer besides the tag's state.

    For how long answers may be kept counts as well: proxies keep the headers of an answer as long as its name stays.
    """
    return blake2b(repr((FORMAT, _max_ages(), question)).encode(), digest_size=6).hexdigest()


class Subject(NamedTuple):
    """What an answer of a global tag, or of all of them, is called after: the question, by its digest, and a way to find the
    state without the answer, which is None if there is no such tag."""

    digest: str
    find: Callable[[], State | None]

    @classmethod
    def all_tags(cls) -> "Subject":
        """The list of all tags."""
        return cls(digest_of("globalTags"), find_state_of_all)

    @classmethod
    def tag(cls, name: str, *, light: bool) -> "Subject":
        """A tag with everything in it, or its item alone."""
        return cls(digest_of("globalTag", name, light), lambda: find_state(name))

    @classmethod
    def payload_lists(cls, name: str) -> "Subject":
        """The names of a tag's payload lists."""
        return cls(digest_of("gtPayloadLists", name), lambda: find_state(name))


def headers_of(state: State, digest: str) -> dict[str, str]:
    """The headers of an answer made from that state, also of one that is not sent because the client has it."""
    headers = {"ETag": f'"{state.version}-{digest}"'} | _permission(state.status, _max_age(state.status))
    if state.modified is not None:
        headers["Last-Modified"] = http_date(state.modified.timestamp())
    return headers


def read_known(meta: Mapping[str, Any], digest: str) -> Known:
    """What a request's headers, by their WSGI names, say that the client has of the answer to that question."""
    named = meta.get("HTTP_IF_NONE_MATCH")
    if named is not None and named.strip() == "*":
        return ANYTHING
    if named is not None:
        return Known(
            tuple(
                version
                for version, _, of_question in (tag.rpartition("-") for tag in ETAG.findall(named)[:ETAGS_READ])
                if of_question == digest
            )
        )
    # Only of use where a cache knows no better; a date that is none is as good as nothing.
    seconds = parse_http_date_safe(meta.get("HTTP_IF_MODIFIED_SINCE") or "")
    return Known(modified=None if seconds is None else datetime.fromtimestamp(seconds, UTC))


def answer_if_kept(meta: Mapping[str, Any], subject: Subject) -> HttpResponse | None:
    """The answer to a client that names what it has, if that still holds; for that the state alone is looked for."""
    known = read_known(meta, subject.digest)
    state = None if known == NOTHING else subject.find()
    return unchanged(headers_of(state, subject.digest)) if state and known.holds(state) else None


def fails_precondition(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether `If-Match` or `If-Unmodified-Since` of a read fails for this response, so that it has to be a 412.

    Django decides, by RFC 9110. Responses without an ETag have no preconditions.
    """
    if request.method not in ("GET", "HEAD") or response.status_code not in (200, 304) or "ETag" not in response:
        return False
    modified = parse_http_date_safe(response.get("Last-Modified", ""))
    # A response without Last-Modified, such as one of a tag that changes just now, has no date to compare.
    if "HTTP_IF_MATCH" not in request.META and (modified is None or "HTTP_IF_UNMODIFIED_SINCE" not in request.META):
        return False
    decided = get_conditional_response(request, response["ETag"], modified, HttpResponse())
    return decided is not None and decided.status_code == 412


def unchanged(headers: Mapping[str, str]) -> HttpResponse:
    """The answer to a client that has it already."""
    response = HttpResponse(status=304, headers=headers)
    del response.headers["Content-Type"]
    return response


def _max_ages() -> tuple[int, int, int]:
    """For how many seconds answers of frozen, unlocked and other tags may be kept without asking again."""
    return (
        settings.CDB_FROZEN_MAX_AGE_SECONDS,
        settings.CDB_UNLOCKED_MAX_AGE_SECONDS,
        settings.CDB_LOCKED_MAX_AGE_SECONDS,
    )


def _max_age(status: str) -> int:
    frozen, unlocked, other = _max_ages()
    return {Status.FROZEN: frozen, Status.UNLOCKED: unlocked, ALL_TAGS: unlocked}.get(status, other)


@lru_cache(maxsize=100)
def _permission(status: str, max_age: int) -> dict[str, str]:
    if not max_age:
        # nginx keeps nothing that it has to ask for again each time, unless it is told that what it keeps is long over.
        # Up to version 1.22 at least it goes by what comes first.
        return {"X-Accel-Expires": "@1", "Cache-Control": "public, no-cache"}
    lasts = ", immutable" if status == Status.FROZEN else ""
    return {"Cache-Control": f"public, max-age={max_age}{lasts}"}
