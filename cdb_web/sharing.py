"""The payload lists of a global tag, and the global tags whose rows they share."""

from collections.abc import Sequence
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.contents import find_past
from cdb_rest.models import GlobalTag
from cdb_rest.rules.as_of import AsOf

LISTS = named_sql.load("shared_lists")


class TagPayloadList(NamedTuple):
    """A payload list. If it shares rows, the other columns say which global tag had them, and when.

    `first` and `before` are the numbers of the changes between which the tag had the list with these rows; `before` is null if it
    still has it. `revision` is that of the change `first`. They are all null if the history of that tag is not stored.
    """

    payload_type: str
    name: str
    is_shared: bool
    tag_id: int | None
    first: int | None
    before: int | None
    tag: str | None
    revision: int | None
    has_history: bool | None
    tag_exists: bool


class Base(NamedTuple):
    """A state of a global tag, as that of the newest of its lists, and the payload types whose lists share its rows."""

    newest: TagPayloadList
    payload_types: list[str]


def read_lists(name: str, as_of: AsOf | None) -> list[TagPayloadList]:
    """The payload lists of a tag in the present or in the past, by payload type. Raises the errors of `find_past`."""
    if as_of is None:
        tag_id, number = GlobalTag.objects.values_list("id", flat=True).get(name=name), None
    else:
        past = find_past(name, as_of)
        tag_id, number = past.tag_id, past.number
    return [TagPayloadList(*row) for row in fetch_all(LISTS, {"tag_id": tag_id, "number": number})]


def bases_of(lists: Sequence[TagPayloadList]) -> list[Base]:
    """The states of global tags that have the rows that some of the lists share: as few as possible, the newest first."""
    left = sorted((one for one in lists if one.is_shared), key=lambda one: one.first or 0, reverse=True)
    found = []
    while left:
        newest = left[0]
        # A list that came earlier is in the same state of the tag if it was still unchanged when the newest one came.
        same = [
            one for one in left if one.tag_id == newest.tag_id and (not one.before or one.before > (newest.first or 0))
        ]
        found.append(Base(newest, [one.payload_type for one in same]))
        left = [one for one in left if one not in same]
    return found
