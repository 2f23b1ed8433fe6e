"""The parameters in the query strings of pages."""

from collections.abc import Mapping

from django.http import QueryDict

from cdb_rest.analysis.contents import Contents, read_contents
from cdb_rest.api.windows import window_between
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.moment import END_OF_TIME, Interval, Moment
from cdb_rest.parsing.parameters import parse_as_of, parse_moment_text


def text(query: Mapping[str, str], name: str) -> str:
    """A parameter without spaces around it; empty if it is missing."""
    return query.get(name, "").strip()


def revision(query: Mapping[str, str], name: str = "rev") -> AsOf | None:
    """The past state that a parameter asks for, None for the present. Raises `InvalidInputError`."""
    value = text(query, name)
    return parse_as_of({name: value}, (name, f"at of {name}")) if value else None


def window(query: Mapping[str, str]) -> Interval | None:
    """The window from `since` up to `until`, None if neither is given. Raises `InvalidInputError`."""
    since, until = text(query, "since"), text(query, "until")
    if not since and not until:
        return None
    start = parse_moment_text("since", since) if since else Moment(0, 0)
    return window_between(start, parse_moment_text("until", until) if until else END_OF_TIME)


def contents(query: QueryDict, name: str, payload_type: str | None = None) -> Contents:
    """The payload lists of a tag, in the revision `rev` if it is given. Raises the errors of `read_contents`."""
    return read_contents([(name, revision(query))], payload_type)
