"""The fields of request bodies, with strict validation and one sentence for each error."""

import json
from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from cdb_rest.parsing.parameters import moment_of, parse_integer, refused_names, unknown_names
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.moment import OPEN, Mode, Moment, end_of_major
from cdb_rest.rules.names import NAME_LENGTH, REVISION_LENGTH, TEXT_LENGTH, name_fault
from cdb_rest.rules.payloads import payload_url_fault


class TextField(serializers.CharField):
    """A text, which is not changed. Numbers are not accepted as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        # What nearly all texts of a bulk request are; the validators of the framework look at each character in Python.
        if isinstance(data, str) and data.isascii() and data.isprintable() and 0 < len(data) <= (self.max_length or 0):
            return data
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": NAME_LENGTH})
class NameField(TextField):
    """The name of a new global tag, payload type or status (`name_fault`)."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        # Before the validators of the framework, so that all faults have the messages of the rule.
        if isinstance(data, str) and (fault := name_fault(data, settings.CDB_NAME_PATTERN)):
            raise serializers.ValidationError(fault)
        return super().run_validation(data)


class PayloadURLField(TextField):
    """The payload URL of a new row (`payload_url_fault`)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=TEXT_LENGTH, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, str) and (fault := payload_url_fault(data, settings.CDB_PAYLOAD_SCHEMES)):
            raise serializers.ValidationError(fault)
        return super().run_validation(data)


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": OPEN, "example": 5})
class NumberField(serializers.Field[int, Any, Any, Any]):
    """An integer in 0…2^63-1: a JSON number without a fraction, or a string of digits."""

    default_error_messages = {"invalid": "An integer from 0 to 9223372036854775807 is required (got {given})."}

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return data if type(data) is int and 0 <= data <= OPEN else super().run_validation(data)

    def to_internal_value(self, data: Any) -> int:
        number = parse_integer(data)
        if number is None or not 0 <= number <= OPEN:
            self.fail("invalid", given=_shown(data))
        return number


@extend_schema_field({"type": "string", "pattern": "^[0-9]{1,19}$", "nullable": True, "example": "1"})
class RevisionField(serializers.Field[str | None, Any, Any, Any]):
    """The revision of a payload: a number in 0…2^63-1, as a JSON number or a string of digits.

    It is stored as a string, with its leading zeros. An empty string means no revision.
    """

    default_error_messages = {"invalid": "A revision is a number from 0 to 9223372036854775807 (got {given})."}

    def to_internal_value(self, data: Any) -> str | None:
        if data == "":
            return None
        number = parse_integer(data)
        # "-0" is no negative number, but it is not stored as a revision either.
        if number is None or number > OPEN or not str(data).isdigit() or len(str(data)) > REVISION_LENGTH:
            self.fail("invalid", given=_shown(data))
        return str(data)


MOMENT = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": OPEN}, "minItems": 2, "maxItems": 2}


@extend_schema_field(MOMENT)
class MomentField(serializers.Field[Moment, Any, Any, Any]):
    """A moment: an array of two integers, [major, minor]."""

    default_error_messages = {
        "invalid": "Must be an array of two integers, [major, minor], each from 0 to 9223372036854775807 (got {given})."
    }

    def to_internal_value(self, data: Any) -> Moment:
        moment = _moment(data)
        if moment is None:
            self.fail("invalid", given=_shown(data))
        return moment


END_OF_MAJOR = {"type": "array", "items": {"oneOf": [{"type": "integer"}, {"type": "string"}]}, "example": [7, "end"]}


@extend_schema_field({"oneOf": [{"type": "string", "enum": ["open", "next"]}, MOMENT, END_OF_MAJOR]})
class UntilField(serializers.Field[Moment | str, Any, Any, Any]):
    """The end of an interval: a moment, [major, "end"] for the end of a major number, "open" for none, or "next" for the next
    start of the payload list.

    The validated value is a `Moment` in the mode of the service, or the text "open" or "next".
    """

    default_error_messages = {
        "invalid": 'Must be an array of two integers, [major, minor], each from 0 to 9223372036854775807, or [major, "end"], '
        'or "open" or "next" (got {given}).'
    }

    def to_internal_value(self, data: Any) -> Moment | str:
        until = data if data in ("open", "next") else _end(data)
        if until is None:
            self.fail("invalid", given=_shown(data))
        return until


@extend_schema_field({"type": "array", "items": MOMENT})
class MomentsField(serializers.Field[list[Moment], Any, Any, Any]):
    """An array of at most `most` moments."""

    default_error_messages = {
        "invalid": "An array of moments is required.",
        "moment": "The moment with the index {index} must be an array of two integers, [major, minor], each from 0 to "
        "9223372036854775807 (got {given}).",
        "most": "At most {most} moments are accepted (got {count}).",
    }

    def __init__(self, most: int, **options: Any) -> None:
        super().__init__(**options)
        self._most = most

    def to_internal_value(self, data: Any) -> list[Moment]:
        if not isinstance(data, list):
            self.fail("invalid")
        if len(data) > self._most:
            self.fail("most", most=self._most, count=len(data))
        moments: list[Moment] = []
        for index, one in enumerate(data):
            moment = _moment(one)
            if moment is None:
                self.fail("moment", index=index, given=_shown(one))
            moments.append(moment)
        return moments


def _end(data: Any) -> Moment | None:
    """The end for an array of two numbers, or of a number and "end"; None if the data are invalid."""
    if isinstance(data, list) and data[1:] == ["end"]:
        major = moment_of([data[0], 0])
        return None if major is None else end_of_major(major.major, Mode(settings.CDB_IOV_MODE))
    return _moment(data)


def _shown(data: Any) -> str:
    """A value of a body for an error message, cut to 60 characters."""
    text = json.dumps(data, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _moment(data: Any) -> Moment | None:
    """The moment of an array of two numbers, or None if the data are invalid."""
    return moment_of(data) if isinstance(data, list) else None


# The members that the body of every write may have, and that of a read with a body.
MEMBERS_OF_WRITES, MEMBERS_OF_READS = ("comment", "dry_run"), ("comment",)


class Input(serializers.Serializer[Any]):
    """The base class of serializers of request bodies. For an optional member, null means the same as omitting it.

    With `strict` in the context, unknown members are errors, because a misspelt optional member would otherwise be
    ignored. Without it, only those of `refused_names` are. The members `also_known` are always accepted.
    """

    also_known: ClassVar[tuple[str, ...]] = MEMBERS_OF_WRITES

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            return dict(super().to_internal_value(data))
        find_wrong = unknown_names if self.context.get("strict") else refused_names
        unknown = find_wrong(data, {*self.fields, *self.also_known})
        if unknown:
            raise serializers.ValidationError(unknown)
        values: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        # Not by the method of the framework, because it takes twice as long for the rows of a bulk request.
        for name, field in self.fields.items():
            given = data.get(name, serializers.empty)
            try:
                is_missing = given is None and not field.required
                values[str(field.source)] = field.run_validation(serializers.empty if is_missing else given)
            except serializers.SkipField:
                pass
            except serializers.ValidationError as error:
                errors[name] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return values


def read_body(request: Request, form: type[Input]) -> dict[str, Any]:
    """The validated body of a request, by the serializer `form`.

    In a view that `is_strict`, unknown members are errors. Raises `InvalidInputError` with all invalid fields, or the errors of
    the parser, such as `ParseError` and `UnsupportedMediaType`.
    """
    # The body may be any JSON value, although the framework declares a mapping.
    data: Any = request.data
    if not isinstance(data, dict):
        raise InvalidInputError("The body must be a JSON object.")
    return read_value(data, form, strict=getattr(request.parser_context["view"], "is_strict", False))


def check_optional_body(request: Request) -> None:
    """Check the members of the body of a write that needs none. Other bodies, such as `null` or invalid JSON, are ignored.

    Raises `InvalidInputError` for the members of `refused_names`.
    """
    try:
        data: Any = request.data
    except APIException:
        return
    rows = data if isinstance(data, list) else [data]
    names = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
    wrong = refused_names(names, MEMBERS_OF_WRITES)
    if wrong:
        raise InvalidInputError(" ".join(text for [text] in wrong.values()), wrong)


def read_value(data: dict[str, Any], form: type[Input], *, strict: bool = False) -> dict[str, Any]:
    """The validated `data`, by the serializer `form`. With `strict`, unknown members are errors.

    Raises `InvalidInputError` with all invalid fields.
    """
    serializer = form(data=data, context={"strict": strict})
    if serializer.is_valid():
        return dict(serializer.validated_data)
    fields = plain_errors(serializer.errors)
    raise InvalidInputError(" ".join(f"{name}: {' '.join(texts)}" for name, texts in fields.items()), fields)


def plain_errors(errors: dict[str, Any] | list[Any]) -> dict[str, list[str]]:
    """The errors of a serializer as lists of messages by field.

    The errors of data that are not an object have the key `non_field_errors`.
    """
    if not isinstance(errors, dict):
        errors = {"non_field_errors": errors}
    return {name: [str(text) for text in texts] for name, texts in errors.items()}
