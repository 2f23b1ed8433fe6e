"""The lookup over HTTP: from a query string to the status, headers and body of the response.

The view uses it, and so does the WSGI application that answers lookups without Django (`cdb_rest/wsgi/shortcut.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.conf import settings

from cdb_rest.connections.snapshot import snapshot
from cdb_rest.exports.export import check_payload_types
from cdb_rest.http.caching import Resource, combined, conditional_get, digest_of, headers_of, read_validators
from cdb_rest.lookup.model import LookupQuery, select_rows
from cdb_rest.lookup.queries import look_up
from cdb_rest.lookup.stack import Stack
from cdb_rest.observe import metrics
from cdb_rest.parsing.parameters import (
    PAST,
    PAYLOAD_TYPES,
    parse_as_of,
    parse_flag,
    parse_moment,
    parse_payload_types,
    parse_tag,
)
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.errors import invalid_field, quoted
from cdb_rest.rules.moment import Interval, Mode

# The names in `SIGNIFICANT` that a lookup knows.
KNOWN = (*PAST, "strict", *PAYLOAD_TYPES)
# Maximum number of global tags in one request.
MAX_TAGS = 10
SINCE, UNTIL, CANONICAL = "CDB-Valid-Since", "CDB-Valid-Until", "CDB-Canonical-Moment"


class TagParameters(NamedTuple):
    """The names of the parameters for global tags, their revisions, and the time in the past."""

    tag: str = "gtName"
    revision: str = "rev"
    time: str = "at"


LOOKUP_PARAMETERS = TagParameters()


@dataclass(frozen=True, slots=True)
class Extras:
    """Optional response headers.

    `window` adds the window of the result (`SINCE`, `UNTIL`). `canonical` also adds its start as the canonical moment
    (`CANONICAL`): one moment that clients can use for the whole window. It has no effect without `window`.
    """

    window: bool = False
    canonical: bool = False


def read_lookup(parameters: Mapping[str, str]) -> tuple[LookupQuery, Extras]:
    """The lookup and the extras that a query string asks for. Unknown parameters are ignored.

    `parameters` are its parameters by name, decoded. Raises `InvalidInputError`.
    """
    window, canonical = parse_flag("window", parameters.get("window")), parse_flag("snap", parameters.get("snap"))
    return read_query(parameters), Extras(window or canonical, canonical)


def respond_to_lookup(query: LookupQuery, extras: Extras, meta: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Status (200 or 304), headers and body of the response to a lookup. The body of a 304 is empty.

    `meta` has the request's headers by their WSGI names. Raises `GlobalTagNotFoundError`, `PayloadTypeNotFoundError`, or
    `django.db.Error`.
    """
    metrics.LOOKUPS_RECEIVED.inc()
    past = () if query.as_of is None else (str(query.as_of),)
    parts = (query.tag, *query.moment, query.only_valid, query.as_objects, query.mode.value, *past, *_types_of(query))
    digest = digest_of(*parts, extras.window, extras.canonical)
    found = look_up(query, read_validators(meta, digest), with_window=extras.window)
    body = found.body
    headers = headers_of(found.state, digest, meta if body is None else None)
    if body is None:
        return 304, headers, b""
    if query.payload_types:
        body, types = select_rows(body, query.payload_types)
        check_payload_types(query.payload_types, types)
    headers["Content-Type"] = "application/json"
    headers |= _window_headers(found.window, query.mode, extras)
    return 200, headers, body


def _types_of(query: LookupQuery) -> tuple[tuple[str, ...], ...]:
    """What the payload types of a query add to its digest: nothing if it has none."""
    return (query.payload_types,) if query.payload_types else ()


def read_lookup_of_tags(lists: Mapping[str, Sequence[str]]) -> tuple[list[LookupQuery], Extras]:
    """The lookups in one or several tags, and the extras, that a query string asks for, as `read_lookup`.

    `lists` has the values of each parameter; only `gtName`, `rev` and those of `PAYLOAD_TYPES` may have several.
    """
    tags, payload_types = read_tags(lists), parse_payload_types(lists)
    query, extras = read_lookup({name: values[-1] for name, values in lists.items() if name not in PAST})
    return [replace(query, tag=tag, as_of=as_of, payload_types=payload_types) for tag, as_of in tags], extras


def read_tags(
    lists: Mapping[str, Sequence[str]], names: TagParameters = LOOKUP_PARAMETERS, first: str | None = None
) -> list[TagState]:
    """The global tags that a request names, in order, each with the past state that is asked for.

    `lists` has the values of each parameter; `first` is a tag that is named elsewhere, before them. With several tags, the
    revision is given for each of them, in the same order and empty for the present, or not at all; the time holds for all.
    Raises `InvalidInputError`.
    """
    tags, revisions, times = (lists.get(name) or [] for name in names)
    tags = tags if first is None else [first, *tags]
    time = {names.time: times[0]} if times else {}
    if len(tags) < 2 and len(revisions) < 2:
        # An empty revision is an error here: with one tag, there is no reason to leave it empty.
        revision = {names.revision: revisions[0]} if revisions else {}
        return [(parse_tag({"gtName": tags[0]} if tags else {}), parse_as_of(time | revision, names[1:]))]
    if "" in tags:
        raise invalid_field(names.tag, f"{names.tag} must not be empty.")
    if len(tags) > MAX_TAGS:
        raise invalid_field(names.tag, f"{names.tag} may be given at most {MAX_TAGS} times (got {len(tags)}).")
    if revisions and len(revisions) != len(tags):
        raise invalid_field(
            names.revision,
            f"{names.revision} must be given once for each global tag; leave a value empty for the present "
            f"(got {len(revisions)} for {len(tags)}).",
        )
    given = [{names.revision: item} if item else {} for item in revisions or [""] * len(tags)]
    return [(tag, parse_as_of(time | one, names[1:])) for tag, one in zip(tags, given, strict=True)]


def respond_to_stack_lookup(
    queries: Sequence[LookupQuery], extras: Extras, meta: Mapping[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    """The response to a lookup in several tags, as `respond_to_lookup`. The queries differ in the tag and past state only."""
    first = queries[0]
    resource = Resource.tags(
        "stack",
        [(query.tag, query.as_of) for query in queries],
        *first.moment,
        first.only_valid,
        first.as_objects,
        first.mode.value,
        extras.window,
        extras.canonical,
        *_types_of(first),
    )
    unchanged = conditional_get(meta, resource)
    if unchanged is not None:
        return 304, dict(unchanged.items()), b""
    metrics.LOOKUPS_RECEIVED.inc()
    with snapshot():
        found = Stack(queries).look_up(first.moment, with_window=extras.window)
        if first.payload_types:
            check_payload_types(first.payload_types, select_rows(found.body, first.payload_types)[1])
    headers = headers_of(combined(found.states), resource.digest) | {"Content-Type": "application/json"}
    return 200, headers | _window_headers(found.window, first.mode, extras), found.body


def _window_headers(window: Interval | None, mode: Mode, extras: Extras) -> dict[str, str]:
    if window is None:
        return {}
    since, until = window.on_wire(mode)
    headers = {SINCE: "{},{}".format(*since), UNTIL: "{},{}".format(*until)}
    return headers | ({CANONICAL: headers[SINCE]} if extras.canonical else {})


def read_query(parameters: Mapping[str, str]) -> LookupQuery:
    """The lookup that a query string asks for, without the extras. Raises `InvalidInputError`."""
    tag = parse_tag(parameters)
    shape = parameters.get("shape", "list")
    if shape not in ("list", "dict"):
        raise invalid_field("shape", f"shape must be list or dict (got {quoted(shape)}).")
    return LookupQuery(
        tag=tag,
        moment=parse_moment(("majorIOV", "minorIOV"), (parameters.get("majorIOV"), parameters.get("minorIOV"))),
        only_valid=parse_flag("strict", parameters.get("strict")),
        as_objects=shape == "dict",
        mode=Mode(settings.CDB_IOV_MODE),
        as_of=parse_as_of(parameters),
        payload_types=parse_payload_types({name: [parameters[name]] for name in PAYLOAD_TYPES if name in parameters}),
    )
