"""HTTP caching: ETag, Last-Modified, Cache-Control, conditional GET and preconditions.

An ETag consists of the version of the tag's state and a digest of the query. So a conditional GET needs only the tag's
state, not the response. While a state that never changes could still be lost by a failover, its responses must be revalidated,
and their ETags have a suffix: a proxy keeps a response's headers as long as its ETag stays the same.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import http_date, parse_http_date_safe

from cdb_rest.connections import durability
from cdb_rest.lookup.model import ALL_TAGS, ANY_STATE, NO_VALIDATORS, REVISION, TIME, State, Validators
from cdb_rest.lookup.shared_reads import read_shared_state, read_state
from cdb_rest.rules.as_of import AsOf, TagState
from cdb_rest.rules.status import Status

# The revision of the global tag from which a response was made, so that clients can log it and ask for it again.
REVISION_HEADER = "CDB-Revision"
# Responses for a revision never change, whatever is configured for the present: a year.
REVISION_MAX_AGE_SECONDS = 31_536_000
# Developers increase it when a new version of the service responds differently for an unchanged tag. All ETags then
# change, so that caches drop what they have stored.
FORMAT = 2
# The precondition headers of reads, by their WSGI names.
PRECONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_UNMODIFIED_SINCE")
# ETags in If-None-Match that do not match this pattern, or come after the first ETAGS_READ, are ignored.
ETAG = re.compile(r'"([!#-~]{1,300})"')
ETAGS_READ = 20
# The statuses of states that never change.
LASTING = (Status.FROZEN, REVISION)
# The suffix of the digest in an ETag of such a state that is not durable. It is no hexadecimal digit.
NOT_DURABLE = "u"


def digest_of(*query: Any) -> str:
    """A digest of everything that decides a response besides the tag's state: 12 hexadecimal digits.

    `query` are values that identify the query; their `repr` must be the same in all processes. The configured max-ages
    are part of the digest, because a proxy keeps a response's headers as long as its ETag stays the same.
    """
    return blake2b(repr((FORMAT, _max_ages(), query)).encode(), digest_size=6).hexdigest()


class Resource(NamedTuple):
    """A resource with an ETag.

    `digest` is that of its query. `find` reads the state of its tags. It raises `GlobalTagNotFoundError`, the other errors
    of `find_past` for a state in the past, and `django.db.Error`.
    """

    digest: str
    find: Callable[[], State]

    @classmethod
    def tag(cls, name: str, *, light: bool = False, as_of: AsOf | None = None) -> "Resource":
        """A tag with its payload lists and IOVs, or with their numbers only (`light`)."""
        return cls._of_tag(name, as_of, "globalTag", light)

    @classmethod
    def payload_lists(cls, name: str, as_of: AsOf) -> "Resource":
        """The names of a tag's payload lists in the past."""
        return cls._of_tag(name, as_of, "gtPayloadLists")

    @classmethod
    def range(cls, name: str, as_of: AsOf | None, *selection: Any) -> "Resource":
        """The IOVs of a tag in a range. `selection` is what decides it besides the state, as for `digest_of`."""
        return cls._of_tag(name, as_of, "range", *selection)

    @classmethod
    def tags(cls, kind: str, tags: Sequence[TagState], *query: Any) -> "Resource":
        """What a kind of request says about one or several tags, each in the present or in the past."""
        digest = digest_of(kind, *((name, str(as_of)) for name, as_of in tags), *query)
        return cls(digest, lambda: combined([read_state(*tag) for tag in tags]))

    @classmethod
    def export(cls, name: str, as_of: AsOf, *selection: Any) -> "Resource":
        """An export of the past. `selection` is what decides it besides the state, as for `digest_of`."""
        return cls._of_tag(name, as_of, "export", *selection)

    @classmethod
    def _of_tag(cls, name: str, as_of: AsOf | None, kind: str, *query: Any) -> "Resource":
        if as_of is None:
            return cls(digest_of(kind, name, *query), lambda: read_shared_state(name))
        return cls(digest_of(kind, name, *query, str(as_of)), lambda: read_state(name, as_of))


def combined(states: Sequence[State]) -> State:
    """The state of several global tags, for a response that was made from all of them.

    The version begins with their revisions, separated by commas. Caches may keep the response as long as that of the tag
    that may change soonest.
    """
    if len(states) == 1:
        return states[0]
    revisions = ",".join(revisions_of(state) for state in states)
    versions = blake2b(" ".join(state.version for state in states).encode(), digest_size=8).hexdigest()
    status = min((state.status for state in states), key=lambda one: (one in LASTING, _max_age(one)))
    return State(f"{revisions}-{versions}", status, None, tuple(state.version for state in states))


def revisions_of(state: State) -> str:
    """The revision of a tag in a state, or those of several tags, separated by commas."""
    return state.version.partition("-")[0]


@lru_cache(maxsize=1000)
def _http_date(moment: datetime) -> str:
    return http_date(moment.timestamp())


def headers_of(state: State, digest: str, not_modified: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The caching headers of a response made from that state. They include the ETag.

    The request must have read the state from the primary, unless it is known as durable. `not_modified` has the headers of the
    request, by their WSGI names, if the response is a 304.
    """
    max_age, not_durable = _max_age(state.status), digest + NOT_DURABLE
    if state.status in LASTING and (
        not durability.is_durable(state.version, state.parts)
        # A cache would keep a response that says that it must be revalidated. The next one is a new response.
        or (not_modified and f'{not_durable}"' in not_modified.get("HTTP_IF_NONE_MATCH", ""))
    ):
        digest, max_age = not_durable, 0
    permission = _permission(state.status, max_age, settings.CDB_ANONYMOUS_READS)
    headers = {"ETag": f'"{state.version}-{digest}"'} | permission
    if state.status != ALL_TAGS:
        headers[REVISION_HEADER] = revisions_of(state)
    if state.modified is not None:
        headers["Last-Modified"] = _http_date(state.modified)
    return headers


def read_validators(meta: Mapping[str, Any], digest: str) -> Validators:
    """The validators in a request's headers for the query with that digest. `meta` has the headers by their WSGI names.

    Equal to `NO_VALIDATORS` if the request has none, or only ETags of other queries. An ETag with the suffix `NOT_DURABLE` counts
    only until the state is durable, so that caches then get a response that they may keep.
    """
    if_none_match = meta.get("HTTP_IF_NONE_MATCH")
    if if_none_match is not None and if_none_match.strip() == "*":
        return ANY_STATE
    if if_none_match is not None:
        return Validators(
            tuple(
                version
                for version, _, digest_of_tag in (
                    tag.rpartition("-") for tag in ETAG.findall(if_none_match)[:ETAGS_READ]
                )
                if digest_of_tag == digest
                or (digest_of_tag == digest + NOT_DURABLE and not durability.is_known(version))
            )
        )
    # RFC 9110: used only without If-None-Match. An invalid date is ignored.
    since = meta.get("HTTP_IF_MODIFIED_SINCE")
    if since is None:
        return NO_VALIDATORS
    seconds = parse_http_date_safe(since)
    return Validators(modified=None if seconds is None else datetime.fromtimestamp(seconds, UTC))


def conditional_get(meta: Mapping[str, Any], resource: Resource) -> HttpResponse | None:
    """A 304 response if the request has validators that match the current state, else None.

    Only the state is read, and only if there are validators. Must not be called in a snapshot, nor by a request that writes.
    Raises the errors of `Resource.find`.
    """
    validators = read_validators(meta, resource.digest)
    if validators == NO_VALIDATORS:
        return None
    state = resource.find()
    return not_modified(headers_of(state, resource.digest, meta)) if validators.match(state) else None


def fails_precondition(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether `If-Match` or `If-Unmodified-Since` of a GET or HEAD fails for this response.

    If so, the caller must send a 412 instead of the response. Preconditions are ignored for responses without an ETag, and for
    responses other than 200 and 304. A time must be exactly that of the response: after a failover, the present state may be
    earlier than the lost one that the client has.
    """
    if request.method not in ("GET", "HEAD") or response.status_code not in (200, 304) or "ETag" not in response:
        return False
    if "HTTP_IF_MATCH" in request.META:
        etag = response["ETag"]
        # The content is the same.
        suffix = f'{NOT_DURABLE}"'
        other = f'{etag.removesuffix(suffix)}"' if etag.endswith(suffix) else f"{etag[:-1]}{suffix}"
        decided = [get_conditional_response(request, one, None, HttpResponse()) for one in (etag, other)]
        return all(one is not None and one.status_code == 412 for one in decided)
    # A response without Last-Modified, such as that of a tag that changed in this second, has no date to compare.
    modified, since = (
        parse_http_date_safe(date or "")
        for date in (response.get("Last-Modified"), request.META.get("HTTP_IF_UNMODIFIED_SINCE"))
    )
    return modified is not None and since is not None and since != modified


def not_modified(headers: Mapping[str, str]) -> HttpResponse:
    """A 304 response with these headers."""
    response = HttpResponse(status=304, headers=headers)
    del response.headers["Content-Type"]
    return response


def unchanged(request: HttpRequest, etag: str) -> HttpResponse | None:
    """A 304 response if `If-None-Match` of a GET or HEAD has this ETag, which is in quotes; else None."""
    found = get_conditional_response(request, etag)
    return not_modified({"ETag": etag}) if found is not None and found.status_code == 304 else None


def _max_ages() -> tuple[int, int, int]:
    """The max-age, in seconds, of responses for frozen, unlocked and other tags, in this order."""
    return (
        settings.CDB_FROZEN_MAX_AGE_SECONDS,
        settings.CDB_UNLOCKED_MAX_AGE_SECONDS,
        settings.CDB_LOCKED_MAX_AGE_SECONDS,
    )


def _max_age(status: str) -> int:
    frozen, unlocked, other = _max_ages()
    return {
        Status.FROZEN: frozen,
        Status.UNLOCKED: unlocked,
        ALL_TAGS: unlocked,
        REVISION: REVISION_MAX_AGE_SECONDS,
        TIME: 0,
    }.get(status, other)


@lru_cache(maxsize=100)
def _permission(status: str, max_age: int, is_public: bool) -> dict[str, str]:
    # If reads need a permission, a shared cache must not send the response to other clients.
    scope = "public" if is_public else "private"
    if not max_age:
        # nginx stores no response that must be revalidated each time, unless X-Accel-Expires names a time in the past.
        # Of the two headers it obeys the first one, at least up to version 1.22.
        return {"X-Accel-Expires": "@1", "Cache-Control": f"{scope}, no-cache"}
    immutable = ", immutable" if status in LASTING else ""
    return {"Cache-Control": f"{scope}, max-age={max_age}{immutable}"}
