"""Validation of request bodies, and the base class of views that reject unknown query parameters."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.parsing.fields import (
    Input,
    MomentField,
    NameField,
    NumberField,
    RevisionField,
    TextField,
    UntilField,
    plain_errors,
    read_body,
)
from cdb_rest.parsing.parameters import is_own_path, parse_flag, unknown_names
from cdb_rest.rules.errors import InvalidInputError, TooManyRowsError, UnknownParameterError, invalid_field
from cdb_rest.rules.moment import END_OF_TIME, OPEN
from cdb_rest.rules.names import COMMENT_LENGTH, LIST_NAME_LENGTH, NAME_LENGTH, TEXT_LENGTH
from cdb_rest.writes.rows import ROWS_NAMED, wrong_rows

ROWS_VALIDATED_AT_ONCE = 1000


class NameInput(Input):
    """The name of an object that is to be created."""

    name = NameField()


class GlobalTagInput(Input):
    """A new global tag."""

    name = NameField()
    status = TextField(max_length=NAME_LENGTH)
    author = TextField(max_length=NAME_LENGTH, required=False, allow_blank=True)
    description = TextField(max_length=TEXT_LENGTH, required=False, allow_blank=True)


class NamedInput(Input):
    """A new status or payload type."""

    name = NameField()
    description = TextField(max_length=TEXT_LENGTH, required=False, allow_blank=True)


class PayloadListInput(Input):
    """A new payload list, given by the name of its payload type."""

    payload_type = TextField(max_length=NAME_LENGTH)


class PayloadListAttachInput(Input):
    """The names of a payload list and of the global tag to attach it to."""

    global_tag = TextField(max_length=NAME_LENGTH)
    payload_list = TextField(max_length=LIST_NAME_LENGTH)


class PayloadIOVInput(Input):
    """A new payload IOV. Without `major_iov_end` and `minor_iov_end`, its end is open.

    Each of them is 9223372036854775807 by default. The end is open only if both have this value.
    """

    payload_url = TextField(max_length=TEXT_LENGTH)
    checksum = TextField(max_length=TEXT_LENGTH, allow_blank=True)
    major_iov = NumberField()
    minor_iov = NumberField()
    major_iov_end = NumberField(default=OPEN)
    minor_iov_end = NumberField(default=OPEN)
    size = NumberField(default=0)
    revision = RevisionField(source="extra", default=None)


class BulkPayloadIOVInput(PayloadIOVInput):
    """A payload IOV of a bulk request, with the name of its payload list."""

    checksum = TextField(max_length=TEXT_LENGTH, allow_blank=True, default="")
    payload_list = TextField(max_length=LIST_NAME_LENGTH)


class PayloadIOVAttachInput(Input):
    """The id of a payload IOV and the name of the payload list to attach it to."""

    payload_list = TextField(max_length=LIST_NAME_LENGTH)
    piov_id = NumberField()


# `until` has no default, because existing clients have different defaults, and "open" would remove later IOVs.
NO_END = (
    'One of three is required: a moment [major, minor], where the validity ends; "next", at the next start in the payload '
    'list; or "open", never: then all later IOVs are removed from the list.'
)


class InsertInput(Input):
    """A payload to insert into a global tag, by the names of tag and payload type."""

    global_tag = TextField(max_length=NAME_LENGTH)
    payload_type = TextField(max_length=NAME_LENGTH)
    payload_url = TextField(max_length=TEXT_LENGTH)
    checksum = TextField(max_length=TEXT_LENGTH, allow_blank=True)
    size = NumberField(default=0)
    revision = RevisionField(source="extra", default=None)
    since = MomentField()
    until = UntilField(error_messages={"required": NO_END, "null": NO_END})
    dry_run = serializers.BooleanField(default=False)
    comment = TextField(max_length=COMMENT_LENGTH, required=False, allow_blank=True)

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Replace `since` and `until` by the columns of the interval and `since_only`, and remove `comment`.

        `since_only` is true if `until` is "next"; the columns then have an open end.
        """
        since, until = attributes.pop("since"), attributes.pop("until")
        attributes.pop("comment", None)
        end = END_OF_TIME if isinstance(until, str) else until
        return attributes | {
            "major_iov": since.major,
            "minor_iov": since.minor,
            "major_iov_end": end.major,
            "minor_iov_end": end.minor,
            "since_only": until == "next",
        }


class RevertInput(Input):
    """The revision to which a global tag is reverted. With `dry_run`, nothing changes."""

    revision = NumberField()
    dry_run = serializers.BooleanField(default=False)
    comment = TextField(max_length=COMMENT_LENGTH, required=False, allow_blank=True)


def read_insertion(request: Request) -> tuple[list[dict[str, Any]], bool]:
    """The rows to insert, in the form of `insert_payloads`, and whether the request is a dry run.

    The body is one object or an array of them. The request is a dry run if `dry_run` is on in the query string or true
    in the rows. Raises `TooManyRowsError`, or `InvalidInputError`, also if `dry_run` differs between the rows.
    """
    # It may also be an array, which the type stubs leave out.
    data: Any = request.data
    rows = (
        read_rows(data, InsertInput, strict=is_own_path(request))
        if isinstance(data, list)
        else [read_body(request, InsertInput)]
    )
    dry_runs = {row.pop("dry_run") for row in rows}
    if len(dry_runs) > 1:
        raise invalid_field("dry_run", "Either all rows are a dry run or none is; ?dry_run=1 is for all of them.")
    return rows, parse_flag("dry_run", request.query_params.get("dry_run")) or True in dry_runs


def read_bulk(request: Request) -> list[dict[str, Any]]:
    """The rows of a bulk request, in the form of `insert_payload_iovs`.

    Raises `TooManyRowsError`, or `InvalidInputError` if the body is not an array or has invalid rows. The `rows` of the
    error describes the first invalid ones.
    """
    data: Any = request.data
    if not isinstance(data, list):
        raise InvalidInputError("The body must be a JSON array of payload IOVs.")
    return read_rows(data, BulkPayloadIOVInput, strict=is_own_path(request))


def read_rows(data: list[Any], form_class: type[Input], *, strict: bool) -> list[dict[str, Any]]:
    """The validated rows, by the serializer `form_class`.

    Raises `TooManyRowsError`, or `InvalidInputError`, whose `rows` describes the first invalid ones.
    """
    if len(data) > settings.CDB_MAX_BULK_ROWS:
        raise TooManyRowsError(
            f"The body has {len(data)} rows; at most {settings.CDB_MAX_BULK_ROWS} are accepted at once."
        )
    rows: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    # In parts: after the first part with enough invalid rows, the rest need not be validated.
    for first in range(0, len(data), ROWS_VALIDATED_AT_ONCE):
        form = form_class(data=data[first : first + ROWS_VALIDATED_AT_ONCE], many=True, context={"strict": strict})
        if form.is_valid():
            rows += (dict(row) for row in form.validated_data)
            continue
        wrong += ({"row": first + row} | plain_errors(errors) for row, errors in sorted(form.errors.items()))
        if len(wrong) >= ROWS_NAMED:
            break
    if wrong:
        raise wrong_rows(wrong, len(data))
    return rows


class StrictView(APIView):
    """A view that rejects unknown query parameters; `query` declares the known ones.

    A view that has a path of nopayloaddb must not be strict, because existing clients may send unknown parameters.
    Such a view ignores them on all of its paths.
    """

    query: Sequence[OpenApiParameter] = ()

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        """Check the permissions, then the query string, before the method of the view runs.

        Raises the errors of `RoutePermission`, or `UnknownParameterError`.
        """
        super().initial(request, *arguments, **named)
        unknown = unknown_names(request.query_params, [parameter.name for parameter in self.query])
        if unknown:
            raise UnknownParameterError(" ".join(text for [text] in unknown.values()), unknown)
