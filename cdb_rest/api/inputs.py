"""What the bodies of requests hold."""

from typing import Any

from rest_framework.request import Request

from cdb_rest.api.fields import Input, NameField, NumberField, RevisionField, TextField, plain_errors
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import OPEN
from cdb_rest.models.names import LIST_NAME_LENGTH, NAME_LENGTH, TEXT_LENGTH


class NameInput(Input):
    """A new name alone."""

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
    """A new payload list, by the name of its payload type."""

    payload_type = TextField(max_length=NAME_LENGTH)


class PayloadListAttachInput(Input):
    """Which payload list to attach to which global tag, by name."""

    global_tag = TextField(max_length=NAME_LENGTH)
    payload_list = TextField(max_length=LIST_NAME_LENGTH)


class PayloadIOVInput(Input):
    """A new payload IOV; ends that are left out are open."""

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
    """Which payload IOV to attach to which payload list."""

    payload_list = TextField(max_length=LIST_NAME_LENGTH)
    piov_id = NumberField()


def read_bulk(request: Request) -> list[dict[str, Any]]:
    """The rows of a bulk request. Raises `InvalidInputError` with every wrong row and its index."""
    data = request.data
    if not isinstance(data, list):
        raise InvalidInputError("The body must be a JSON array of payload IOVs.")
    form = BulkPayloadIOVInput(data=data, many=True)
    if form.is_valid():
        return [dict(row) for row in form.validated_data]
    wrong = [{"row": row} | plain_errors(errors) for row, errors in sorted(form.errors.items())]
    raise InvalidInputError(f"Wrong rows: {len(wrong)} of {len(data)}; nothing was stored.", rows=wrong)
