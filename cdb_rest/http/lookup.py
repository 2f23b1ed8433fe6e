"""The lookup over HTTP: from a query string to the status, headers and body of the response.

The view uses it, and so does the WSGI application that answers lookups without Django (`cdb_rest/wsgi/fast_lookup.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import Mode
from cdb_rest.http.caching import digest_of, headers_of, read_validators
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.lookup.queries import look_up
from cdb_rest.metrics import counts
from cdb_rest.parsing.parameters import parse_as_of, parse_flag, parse_moment, parse_tag

SINCE, UNTIL, CANONICAL = "CDB-Valid-Since", "CDB-Valid-Until", "CDB-Canonical-Moment"


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

    `meta` has the request's headers by their WSGI names. Raises `GlobalTagNotFoundError`, or `django.db.Error`.
    """
    counts.LOOKUPS_RECEIVED.inc(1)
    past = () if query.as_of is None else (str(query.as_of),)
    parts = (query.tag, *query.moment, query.only_valid, query.as_objects, query.mode.value, *past)
    digest = digest_of(*parts, extras.window, extras.canonical)
    found = look_up(query, read_validators(meta, digest), with_window=extras.window)
    headers = headers_of(found.state, digest)
    if found.body is None:
        return 304, headers, b""
    headers["Content-Type"] = "application/json"
    if found.window is not None:
        since, until = found.window.on_wire(query.mode)
        headers |= {SINCE: "{},{}".format(*since), UNTIL: "{},{}".format(*until)}
        if extras.canonical:
            headers[CANONICAL] = headers[SINCE]
    return 200, headers, found.body


def read_query(parameters: Mapping[str, str]) -> LookupQuery:
    """The lookup that a query string asks for, without the extras. Raises `InvalidInputError`."""
    tag = parse_tag(parameters)
    shape = parameters.get("shape", "list")
    if shape not in ("list", "dict"):
        raise InvalidInputError("shape must be list or dict.", {"shape": ["shape must be list or dict."]})
    return LookupQuery(
        tag=tag,
        moment=parse_moment(("majorIOV", "minorIOV"), (parameters.get("majorIOV"), parameters.get("minorIOV"))),
        only_valid=parse_flag("strict", parameters.get("strict")),
        as_objects=shape == "dict",
        mode=Mode(settings.CDB_IOV_MODE),
        as_of=parse_as_of(parameters),
    )
