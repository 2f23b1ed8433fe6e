"""Validation of request bodies that ask about many moments."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from cdb_rest.http.lookup import LOOKUP_PARAMETERS, TagParameters, read_tags
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.parsing.fields import Input, MomentField, MomentsField, NumberField, TextField
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import Mode, Moment
from cdb_rest.rules.names import NAME_LENGTH

# The maximum numbers of moments in a request for lookups, and in one for affected moments.
MAX_MOMENTS = 10_000
MAX_AFFECTED_MOMENTS = 100_000


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class OneOrManyField(serializers.Field[list[Any], Any, Any, Any]):
    """A value, or an array of values; validated, an array. `child` validates each value."""

    def __init__(self, child: serializers.Field[Any, Any, Any, Any], **options: Any) -> None:
        super().__init__(**options)
        self._child = child

    def to_internal_value(self, data: Any) -> list[Any]:
        return [self._child.run_validation(one) for one in (data if isinstance(data, list) else [data])]


class ManyLookupsInput(Input):
    """Lookups at many moments, in a tag or in several ones, with the parameters of a lookup."""

    gtName = OneOrManyField(TextField(max_length=NAME_LENGTH))  # noqa: N815 -- as in the query string of a lookup
    moments = MomentsField(MAX_MOMENTS)
    strict = serializers.BooleanField(default=False)
    shape = serializers.ChoiceField(choices=["list", "dict"], default="list")
    rev = OneOrManyField(NumberField(allow_null=True), required=False)
    at = TextField(required=False)


def queries_of(values: dict[str, Any]) -> list[LookupQuery]:
    """The lookups of a validated `ManyLookupsInput`, one for each tag, without a moment. Raises `InvalidInputError`."""
    tags = tags_of(values)
    if len(tags) * len(values["moments"]) > MAX_MOMENTS:
        raise invalid_field(
            "moments",
            f"The number of moments times the number of tags must be at most {MAX_MOMENTS} "
            f"(got {len(values['moments'])} times {len(tags)}).",
        )
    return [
        LookupQuery(
            tag=tag,
            moment=Moment(0, 0),
            only_valid=values["strict"],
            as_objects=values["shape"] == "dict",
            mode=Mode(settings.CDB_IOV_MODE),
            as_of=as_of,
        )
        for tag, as_of in tags
    ]


def tags_of(
    values: Mapping[str, Any], names: TagParameters = LOOKUP_PARAMETERS, first: str | None = None
) -> list[TagState]:
    """The global tags in the validated members with these names, as `read_tags`; null is an empty parameter."""
    given = {
        name: values[name] if isinstance(values[name], list) else [values[name]] for name in names if name in values
    }
    texts = {name: ["" if one is None else str(one) for one in members] for name, members in given.items()}
    return read_tags(texts, names, first)


class StateInput(Input):
    """A state of a global tag, or of several ones: the present, a revision, or a time."""

    tag = TextField(max_length=NAME_LENGTH, required=False)
    base = OneOrManyField(TextField(max_length=NAME_LENGTH), required=False)
    rev = OneOrManyField(NumberField(allow_null=True), required=False)
    at = TextField(required=False)


class AffectedInput(Input):
    """What to compare the tag of the path with, and the moments of interest.

    `from_rev` or `from_at` is the past state of the tag. `to` is the other state, by default the present of the same tag.
    `base` are further tags after that of the path.
    """

    base = OneOrManyField(TextField(max_length=NAME_LENGTH), required=False)
    from_rev = OneOrManyField(NumberField(allow_null=True), required=False)
    from_at = TextField(required=False)
    to = StateInput(required=False)
    moments = MomentsField(MAX_AFFECTED_MOMENTS, required=False)
    since = MomentField(required=False)
    until = MomentField(required=False)
    payload_type = TextField(max_length=NAME_LENGTH, required=False)
    by = serializers.ChoiceField(choices=["url", "checksum"], default="url")
