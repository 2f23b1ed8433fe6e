"""Proposals: the writes that requests propose, read from their documents."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
from django.conf import settings
from rest_framework import serializers

from cdb_rest.api.clearing import IntervalInput
from cdb_rest.models import ChangeAction, ChangeRequest, GlobalTagChange, RequestKind
from cdb_rest.parsing.fields import Input, NumberField, TextField, read_value
from cdb_rest.parsing.iov_files import Options, read_iov_rows
from cdb_rest.rules.access import Origin
from cdb_rest.rules.iov_rows import IOVRow
from cdb_rest.rules.names import NAME_LENGTH
from cdb_rest.writes.clearing import clear_interval
from cdb_rest.writes.global_tags import change_status, clone_global_tag
from cdb_rest.writes.imports import ImportOptions, ImportResult, import_payload_iovs
from cdb_rest.writes.requests import Proposal
from cdb_rest.writes.undoing import undo_change


class ProposedInput(Input):
    """The base class of the documents of proposed writes. They are stored, so they have no other members."""

    also_known = ()


class RowsInput(ProposedInput):
    """The rows of an import, as in the JSON array of a file; and whether an end "open" removes later IOVs."""

    rows = serializers.ListField(allow_empty=False)
    open_hides_later = serializers.BooleanField(default=False)


class StatusInput(ProposedInput):
    """The new status of the tag."""

    status = TextField(max_length=NAME_LENGTH)


class SourceInput(ProposedInput):
    """The global tag that is cloned."""

    clone_of = TextField(max_length=NAME_LENGTH)


class RevisionInput(ProposedInput):
    """The revision of the change that is undone."""

    revision = NumberField()


class ClearedInput(ProposedInput, IntervalInput):
    """The interval that is cleared."""


FORMS: dict[RequestKind, type[Input]] = {
    RequestKind.IMPORT: RowsInput,
    RequestKind.CLEAR: ClearedInput,
    RequestKind.STATUS: StatusInput,
    RequestKind.CLONE: SourceInput,
    RequestKind.UNDO: RevisionInput,
}


def read_proposal(kind: RequestKind, global_tag: str, document: Any) -> Proposal:
    """The write that a document of a kind describes. Raises `InvalidInputError`, and the errors of `read_iov_rows`."""
    values = read_value(document, FORMS[kind], strict=True)
    changes_contents = kind not in (RequestKind.STATUS, RequestKind.CLONE)
    if kind == RequestKind.IMPORT:
        # Read at once, so that invalid rows are refused before anything is locked.
        rows = rows_of(values["rows"])
        options = ImportOptions(hides_later=values["open_hides_later"])

        def insert(origin: Origin, confirmed: bool) -> ImportResult:
            return import_payload_iovs(
                read=lambda: rows, global_tag=global_tag, options=options, confirmed=confirmed, origin=origin
            )

        return Proposal(kind, global_tag, insert, changes_contents)
    services: dict[RequestKind, Callable[..., object]] = {
        RequestKind.CLEAR: partial(clear_interval, global_tag=global_tag),
        RequestKind.STATUS: partial(change_status, name=global_tag),
        RequestKind.CLONE: partial(clone_global_tag, target=global_tag),
        RequestKind.UNDO: partial(undo_change, name=global_tag),
    }
    if kind == RequestKind.UNDO:
        of_status = GlobalTagChange.objects.filter(global_tag=global_tag, action=ChangeAction.STATUS, **values)
        changes_contents = not of_status.exists()
    elif kind == RequestKind.CLONE:
        values = {"source": values["clone_of"]}
    return Proposal(kind, global_tag, lambda origin, _: services[kind](**values, origin=origin), changes_contents)


def rows_of(documents: list[Any]) -> list[IOVRow]:
    """The rows that the elements of a JSON array describe. Raises the errors of `read_iov_rows`."""
    return list(read_iov_rows(io.BytesIO(orjson.dumps(documents)), Options(max_rows=settings.CDB_MAX_BULK_ROWS)))


def proposal_of(request: ChangeRequest) -> Proposal:
    """The write that a stored request proposes. Raises the errors of `read_proposal`."""
    return read_proposal(RequestKind(request.kind), request.global_tag, request.document)
