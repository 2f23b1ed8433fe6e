"""Parameters of paths and query strings: strict about meaning, each error in one sentence."""

import re
from collections.abc import Sequence
from typing import Any

from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import OPEN, Moment

# No number that fits needs more digits; a longer text is not worth converting.
INTEGER = re.compile(r"-?[0-9]{1,30}", re.ASCII)


def parse_integer(value: Any) -> int | None:
    """`value` as an integer if it is one or is a string of its digits, else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and INTEGER.fullmatch(value):
        return int(value)
    return None


def parse_number(name: str, text: str | None) -> int:
    """A number in 0…2^63-1 from a path or query string. Raises `InvalidInputError` that names it."""
    number = parse_integer(text)
    if number is None or not 0 <= number <= OPEN:
        message = f"{name} must be an integer from 0 to {OPEN}."
        raise InvalidInputError(message, {name: [message]})
    return number


def parse_moment(names: tuple[str, str], texts: tuple[str | None, str | None]) -> Moment:
    """A moment from a path or query string. Raises `InvalidInputError` that names the wrong half."""
    return Moment(*(parse_number(name, text) for name, text in zip(names, texts, strict=True)))


def parse_flag(name: str, text: str | None) -> bool:
    """A flag of a query string: bare, 1 or true mean on, 0 or false off, and so does leaving it out.

    Raises `InvalidInputError`.
    """
    values = {"": True, "1": True, "true": True, "0": False, "false": False, None: False}
    if text not in values:
        message = f"{name} must be 1, true or empty for on, or 0 or false for off (got {text})."
        raise InvalidInputError(message, {name: [message]})
    return values[text]


def is_light(values: Sequence[str]) -> bool:
    """Whether `light` asks for a tag's item: existing clients give it any value, so only 0 and false mean no.

    nginx.conf decides by the same rule which pool answers.
    """
    return any(value not in ("0", "false") for value in values)
