"""Parsing of parameters of paths and query strings, with strict validation and one sentence for each error.

Views that nopayloaddb does not have reject unknown parameters and unknown members of bodies
(`cdb_rest.api.base.views.StrictView`): otherwise a misspelt optional name would be ignored. Other views may get unknown names,
because existing clients may send them; but no request may have one that is, or resembles, a name in `SIGNIFICANT`
(`refused_names`).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from typing import Any

from django.conf import settings

from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import invalid_field, quoted
from cdb_rest.rules.moment import END_OF_TIME, OPEN, Mode, Moment, end_of_major

# Valid numbers have fewer digits. The limit avoids the conversion of long texts.
INTEGER = re.compile(r"-?[0-9]{1,30}", re.ASCII)
# The parameters that ask for a state in the past.
PAST = ("rev", "at")
# The parameters that select payload types; the second one is an alias.
PAYLOAD_TYPES = ("payloadType", "payload_type")
# The names of parameters and members that would change what a request does. They are errors where they have no meaning.
SIGNIFICANT = (*PAST, "revision", "strict", "dry_run", *PAYLOAD_TYPES)
# Shorter names resemble too many others.
RESEMBLING_LENGTH = 5
# The maximum number of names in an error, and their maximum length. They limit the size of the response.
NAMED, NAMED_LENGTH = 5, 60
UNENCODED_PLUS = re.compile(r" (\d\d(?::?\d\d)?)$")


def parse_integer(value: Any) -> int | None:
    """The integer `value`: an int, or a string of at most 30 digits, which may have a minus sign.

    None for other values, also for a bool. The caller must check the range.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and INTEGER.fullmatch(value):
        return int(value)
    return None


def moment_of(numbers: Sequence[Any]) -> Moment | None:
    """The moment of a major and a minor number, as `parse_integer` accepts them; None unless they are two in 0…2^63-1."""
    if len(numbers) != 2:
        return None
    major, minor = map(parse_integer, numbers)
    if major is None or minor is None or not (0 <= major <= OPEN and 0 <= minor <= OPEN):
        return None
    return Moment(major, minor)


def parse_number(name: str, text: str | None) -> int:
    """An integer in 0…2^63-1 from a path or query string. `name` is the name of the parameter, for the error.

    Raises `InvalidInputError`, also if the parameter is missing (None).
    """
    number = parse_integer(text)
    if number is None or not 0 <= number <= OPEN:
        raise invalid_field(
            name, f"{name} must be an integer from 0 to {OPEN} (got {quoted(text) if text else 'nothing'})."
        )
    return number


def parse_tag(parameters: Mapping[str, str]) -> str:
    """The name of the global tag from the parameter `gtName`. Raises `InvalidInputError` if it is missing or empty."""
    tag = parameters.get("gtName")
    if not tag:
        raise invalid_field("gtName", "gtName is required.")
    return tag


def parse_moment(names: tuple[str, str], texts: tuple[str | None, str | None]) -> Moment:
    """A moment from the parameters for major and minor, in this order.

    Raises `InvalidInputError` for the first invalid or missing one.
    """
    return Moment(*(parse_number(name, text) for name, text in zip(names, texts, strict=True)))


def parse_moment_text(name: str, text: str) -> Moment:
    """The moment of a text in the format `major,minor`. `name` is that of the parameter. Raises `InvalidInputError`."""
    moment = moment_of(text.split(","))
    if moment is None:
        raise invalid_field(name, f"{name} must be major,minor, two integers from 0 to {OPEN} (got {quoted(text)}).")
    return moment


def parse_payload_types(lists: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The names of payload types that a query string selects, sorted and without repetitions; empty if it selects none.

    `lists` has the values of each parameter. Each value of `PAYLOAD_TYPES` is a name, or names separated by commas. Raises
    `InvalidInputError` for an empty name.
    """
    given = [(parameter, text) for parameter in PAYLOAD_TYPES for text in lists.get(parameter, ())]
    for parameter, text in given:
        if "" in text.split(","):
            raise invalid_field(
                parameter,
                f"{parameter} must not have an empty name; leave it out to get all of them (got {quoted(text)}).",
            )
    return tuple(sorted({name for _, text in given for name in text.split(",")}))


def parse_end_text(name: str, text: str) -> Moment:
    """The end of an interval, in the mode of the service, as people write it: `major,minor`, `major,end` for the end of a major
    number, `open`, or only `major`, which in discrete mode means until its end. Raises `InvalidInputError`.
    """
    mode = Mode(settings.CDB_IOV_MODE)
    major, comma, minor = (part.strip() for part in text.partition(","))
    if text.strip().lower() == "open":
        return END_OF_TIME
    if minor == "end" or (not comma and mode is Mode.DISCRETE):
        return end_of_major(parse_number(name, major), mode)
    return parse_moment_text(name, f"{major},{minor if comma else 0}")


def parse_flag(name: str, text: str | None) -> bool:
    """A flag of a query string: true for an empty value, 1 or true; false for 0, false or if it is missing (None).

    Raises `InvalidInputError` for other values.
    """
    values = {"": True, "1": True, "true": True, "0": False, "false": False, None: False}
    if text not in values:
        raise invalid_field(
            name, f"{name} must be 1, true or empty for on, or 0 or false for off (got {quoted(text)})."
        )
    return values[text]


def parse_as_of(parameters: Mapping[str, str], names: tuple[str, str] = ("rev", "at")) -> AsOf | None:
    """The past state that the parameters for a revision or a time ask for, or None without them.

    A time without a time zone is in UTC. Raises `InvalidInputError`, also if both are given.
    """
    revision, time = (parameters.get(name) for name in names)
    if revision is not None and time is not None:
        raise invalid_field(names[1], f"{names[0]} and {names[1]} must not be given together.")
    if revision is not None:
        return AsOf(revision=parse_number(names[0], revision))
    return None if time is None else AsOf(time=parse_time(names[1], time))


def parse_time(name: str, text: str) -> datetime:
    """A time in UTC. Without a time zone, it is in UTC. Raises `InvalidInputError`."""
    try:
        # A plus sign that was not encoded arrives as a space.
        found = datetime.fromisoformat(UNENCODED_PLUS.sub(r"+\1", text))
        # PostgreSQL accepts no offsets of 16 hours or more, and Python accepts them up to 24.
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid_field(name, f"{name} must be a time such as 2026-11-24T12:00:00Z (got {quoted(text)}).") from None


def unknown_names(names: Iterable[str], known: Collection[str]) -> dict[str, list[str]]:
    """Error messages for the names that are not in `known`, by name; empty if all are known.

    Only the first `NAMED` unknown names are reported, each cut to `NAMED_LENGTH` characters.
    """
    unknown = islice((name[:NAMED_LENGTH] for name in names if name not in known), NAMED)
    return {name: [_message(name, known)] for name in unknown}


def refused_names(names: Iterable[str], known: Collection[str]) -> dict[str, list[str]]:
    """Error messages for the names that are not in `known` and are, or resemble, one of `SIGNIFICANT`. As `unknown_names`."""
    return unknown_names((name for name in names if name not in known and significant_name(name)), known)


def significant_name(name: str) -> str | None:
    """The name in `SIGNIFICANT` that is equal to `name`, or that it resembles; None if there is none.

    A name of at least `RESEMBLING_LENGTH` letters resembles another one if, apart from case, they differ at most by one letter
    that is inserted, deleted or replaced.
    """
    if name in SIGNIFICANT:
        return name
    # The limit avoids the conversion of long texts.
    if not RESEMBLING_LENGTH <= len(name) <= NAMED_LENGTH:
        return None
    return next((item for item in SIGNIFICANT if _differ_by_a_letter(name.casefold(), item.casefold())), None)


def _differ_by_a_letter(a: str, b: str) -> bool:
    """Whether two texts are equal, or differ by one letter that is inserted, deleted or replaced."""
    start = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:]


def _message(name: str, known: Collection[str]) -> str:
    meant, shown = significant_name(name), name if name.isidentifier() else quoted(name)
    # With this cutoff, `rev` is near to `revision`.
    nearest = [meant] if meant in known else get_close_matches(name, known, n=1, cutoff=0.5)
    if nearest:
        return f"{shown} is not known here; did you mean {nearest[0]}?"
    return f"{shown} is not known here{f'; {meant} has no meaning for this request, leave it out' if meant else ''}."
