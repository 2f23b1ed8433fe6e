"""The lookup over HTTP: what a query string asks, and status, headers and body of the response.

Two callers share it: the WSGI application that answers before Django (`cdb_rest/wsgi/lookup_first.py`), and the view.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import Mode
from cdb_rest.http.caching import digest_of, headers_of, read_known
from cdb_rest.lookup.queries import look_up
from cdb_rest.lookup.question import Question
from cdb_rest.metrics import counts
from cdb_rest.parsing.parameters import parse_flag, parse_moment

SINCE, UNTIL, CANONICAL = "CDB-Valid-Since", "CDB-Valid-Until", "CDB-Canonical-Moment"


@dataclass(frozen=True, slots=True)
class Extras:
    """What a client wants to know besides the answer: its window, and the moment that stands for all in the window."""

    window: bool = False
    canonical: bool = False


def read_lookup(query: Mapping[str, str]) -> tuple[Question, Extras]:
    """What the parameters of a query string ask. Raises `InvalidInputError`."""
    window, canonical = parse_flag("window", query.get("window")), parse_flag("snap", query.get("snap"))
    return read_question(query), Extras(window or canonical, canonical)


def answer_lookup(question: Question, extras: Extras, meta: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to a question that came with these WSGI headers; of 304 the body is empty.

    Raises `GlobalTagNotFoundError`.
    """
    counts.LOOKUPS_REACHED.inc(1)
    asked = (question.tag, *question.moment, question.only_valid, question.as_objects, question.mode.value)
    digest = digest_of(*asked, extras.window, extras.canonical)
    found = look_up(question, read_known(meta, digest), with_window=extras.window)
    headers = headers_of(found.state, digest)
    if found.text is None:
        return 304, headers, b""
    headers["Content-Type"] = "application/json"
    if found.window is not None:
        since, until = found.window.on_wire(question.mode)
        headers |= {SINCE: "{},{}".format(*since), UNTIL: "{},{}".format(*until)}
        if extras.canonical:
            headers[CANONICAL] = headers[SINCE]
    return 200, headers, found.text.encode()


def read_question(query: Mapping[str, str]) -> Question:
    """The question that the parameters of a query string ask. Raises `InvalidInputError`."""
    tag = query.get("gtName")
    if not tag:
        raise InvalidInputError("gtName is required.", {"gtName": ["gtName is required."]})
    shape = query.get("shape", "list")
    if shape not in ("list", "dict"):
        raise InvalidInputError("shape must be list or dict.", {"shape": ["shape must be list or dict."]})
    return Question(
        tag=tag,
        moment=parse_moment(("majorIOV", "minorIOV"), (query.get("majorIOV"), query.get("minorIOV"))),
        only_valid=parse_flag("strict", query.get("strict")),
        as_objects=shape == "dict",
        mode=Mode(settings.CDB_IOV_MODE),
    )
