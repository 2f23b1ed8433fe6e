"""The parameters in the query strings of pages."""

import re
from collections.abc import Mapping

from cdb_rest.analysis.contents import Contents, read_contents
from cdb_rest.api.base.windows import window_between
from cdb_rest.parsing.parameters import parse_as_of, parse_moment_text
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import InvalidInputError, PayloadListNotFoundError, quoted
from cdb_rest.rules.moment import END_OF_TIME, Interval, Moment

# The parameters that are names of global tags or payload types. An existing name may begin or end with a space.
NAMES = ("tag", "a", "b", "type")
MAX_MOMENTS = 1000


def text(query: Mapping[str, str], name: str) -> str:
    """A parameter without spaces around it, or unchanged if it is a name; empty if it is missing."""
    value = query.get(name, "")
    return value if name in NAMES else value.strip()


def revision(query: Mapping[str, str], name: str = "rev") -> AsOf | None:
    """The past state that a parameter asks for by a revision number, None for the present. Raises `InvalidInputError`."""
    value = text(query, name)
    return parse_as_of({"Revision": value}, ("Revision", "Time")) if value else None


def moment(name: str, value: str) -> Moment:
    """A moment as people write it: `major,minor`, also with spaces, or only the major number.

    `name` is that of the field, for the error. Raises `InvalidInputError`, also if it is empty.
    """
    if not value:
        raise InvalidInputError(f"{name} is required, as major,minor.")
    return parse_moment_text(name, plain_moment(value))


def moments(value: str, most: int = MAX_MOMENTS) -> list[Moment]:
    """Moments, each as in `moment`, separated by line breaks or semicolons. Raises `InvalidInputError`, also for too many."""
    texts = [text for text in re.split(r"[;\n]", value) if text.strip()]
    if len(texts) > most:
        raise InvalidInputError(f"At most {most} moments are accepted on a page (got {len(texts)}).")
    return [moment("Moments", text) for text in texts]


def plain_moment(value: str) -> str:
    """The text of a moment as people write it, in the form of the API. It is not validated."""
    halves = [half.strip() for half in value.split(",")]
    return ",".join(halves if len(halves) > 1 else [*halves, "0"])


def window(query: Mapping[str, str]) -> Interval | None:
    """The window from `since` up to `until`, None if neither is given. A missing start is (0, 0), a missing end is open.

    Raises `InvalidInputError`.
    """
    since, until = text(query, "since"), text(query, "until")
    if not since and not until:
        return None
    start = moment("From", since) if since else Moment(0, 0)
    return window_between(start, moment("Up to", until) if until else END_OF_TIME)


def contents(query: Mapping[str, str], name: str, payload_type: str | None = None) -> Contents:
    """The payload lists of a tag, in the revision `rev` if it is given; with `payload_type`, only the list of this type.

    Raises the errors of `read_contents`, or `PayloadListNotFoundError` if the tag has no such list.
    """
    found = read_contents([(name, revision(query))], [payload_type] if payload_type else ())
    if payload_type:
        check_list(found, name, payload_type)
    return found


def check_list(found: Contents, name: str, payload_type: str) -> None:
    """Raise `PayloadListNotFoundError` if the tag has no payload list of this type."""
    if payload_type not in found.lists:
        raise PayloadListNotFoundError(described=f"of type {quoted(payload_type)} in global tag {quoted(name)}")
