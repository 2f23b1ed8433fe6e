"""Reading values from bodies, query strings and paths: strict about meaning, each error in one sentence."""

import re
from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from cdb_rest.api.strict import is_own_path, unknown_names
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import OPEN, Moment
from cdb_rest.models.names import NAME_LENGTH, NAME_RULE, REVISION_LENGTH, fits_into_path

# No number that fits needs more digits; a longer text is not worth converting.
INTEGER = re.compile(r"-?[0-9]{1,30}", re.ASCII)


class TextField(serializers.CharField):
    """A text, kept as it is; numbers are not taken for text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class NameField(TextField):
    """The name of a new object, which must be able to stand in a URL's path."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=NAME_LENGTH, **options)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if not fits_into_path(name):
            raise serializers.ValidationError(NAME_RULE)
        return name


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": OPEN, "example": 5})
class NumberField(serializers.Field):
    """A number in 0…2^63-1, as a JSON number or as a string of digits."""

    default_error_messages = {"invalid": "An integer from 0 to 9223372036854775807 is required."}

    def to_internal_value(self, data: Any) -> int:
        number = parse_integer(data)
        if number is None or not 0 <= number <= OPEN:
            self.fail("invalid")
        return number


@extend_schema_field({"type": "string", "pattern": "^[0-9]{1,19}$", "nullable": True, "example": "1"})
class RevisionField(serializers.Field):
    """A revision: digits, as a string or a number; kept as a string, leading zeros and all. Empty means none."""

    default_error_messages = {"invalid": "A revision is a number from 0 to 9223372036854775807."}

    def to_internal_value(self, data: Any) -> str | None:
        if data == "":
            return None
        number = parse_integer(data)
        if number is None or not 0 <= number <= OPEN or len(str(data)) > REVISION_LENGTH:
            self.fail("invalid")
        return str(data)


@extend_schema_field(
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": OPEN}, "minItems": 2, "maxItems": 2}
)
class MomentField(serializers.Field):
    """A moment: an array of two numbers."""

    default_error_messages = {
        "invalid": "An array of two integers, [major, minor], each from 0 to 9223372036854775807."
    }

    def to_internal_value(self, data: Any) -> Moment:
        if not isinstance(data, list) or len(data) != 2:
            self.fail("invalid")
        major, minor = (parse_integer(half) for half in data)
        if major is None or minor is None or not (0 <= major <= OPEN and 0 <= minor <= OPEN):
            self.fail("invalid")
        return Moment(major, minor)


@extend_schema_field(
    {"oneOf": [{"type": "string", "enum": ["open", "next"]}, MomentField._spectacular_annotation["field"]]}
)
class UntilField(MomentField):
    """The end of an interval: a moment, "open", or "next" for the next start of the payload list."""

    default_error_messages = {
        "invalid": 'An array of two integers, [major, minor], each from 0 to 9223372036854775807, or "open" or "next".'
    }

    def to_internal_value(self, data: Any) -> Moment | str:
        return data if data in ("open", "next") else super().to_internal_value(data)


class Input(serializers.Serializer):
    """The body of a request. Clients may send null for what they could have left out.

    With `strict` in the context, members that the form does not have are errors, since a misspelt one would be taken for
    one that was left out. Any write may have a comment.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict):
            unknown = unknown_names(data, [*self.fields, "comment"]) if self.context.get("strict") else {}
            if unknown:
                raise serializers.ValidationError(unknown)
            data = {
                key: value
                for key, value in data.items()
                if value is not None or key not in self.fields or self.fields[key].required
            }
        return super().to_internal_value(data)


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


def read_body(request: Request, form: type[Input]) -> dict[str, Any]:
    """The request's body as `form` describes it. Raises `InvalidInputError` with every wrong field."""
    data = request.data
    if not isinstance(data, dict):
        raise InvalidInputError("The body must be a JSON object.")
    return read_value(data, form, strict=is_own_path(request))


def read_value(data: dict[str, Any], form: type[Input], *, strict: bool = False) -> dict[str, Any]:
    """`data` as `form` describes it. Raises `InvalidInputError` with every wrong field."""
    filled = form(data=data, context={"strict": strict})
    if filled.is_valid():
        return dict(filled.validated_data)
    fields = plain_errors(filled.errors)
    raise InvalidInputError(" ".join(f"{name}: {' '.join(texts)}" for name, texts in fields.items()), fields)


def plain_errors(errors: dict[str, Any] | list) -> dict[str, list[str]]:
    """A form's errors as lists of sentences by field; those of a whole that is no object are under its own key."""
    if not isinstance(errors, dict):
        errors = {"non_field_errors": errors}
    return {name: [str(text) for text in texts] for name, texts in errors.items()}
