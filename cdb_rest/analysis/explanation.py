"""The reasons for the result of a strict lookup: which row it is, which change put it there, and what that replaced."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.export import check_payload_types
from cdb_rest.history.contents import find_past, past_lists
from cdb_rest.lookup.model import State, past_state
from cdb_rest.lookup.shared_reads import read_state
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList
from cdb_rest.rules.as_of import AsOf, TagState
from cdb_rest.rules.moment import Mode, Moment

WALK = named_sql.load("explanation")
COLUMNS = (
    "payload_type", "step", "is_same", "list_id", "list_name", "began", "iov_id", "payload_url", "checksum", "size", "extra",
    "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "is_valid",
)  # fmt: skip


class Reason(StrEnum):
    """Why a strict lookup has this result for a payload type."""

    VALID = "valid"  # the row contains the moment
    ENDED = "ended"  # the row with the latest start has ended before the moment
    NOT_STARTED = "not_started"  # no row of the payload list starts at the moment or before
    NO_PAYLOAD_LIST = "no_payload_list"  # the tag has no payload list of the type


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason for a payload type in a global tag. `row` and `replaced` have the columns of `explanation` (sql/analysis.sql).

    `row` is the row with the latest start, None if there is none. `change` is the change since which the payload, or its
    lack, is there: None if it has always been so, or if the change is not recorded. `replaced` is the row that was valid
    before this change, None if there was none. `added_by` is the client that added the row while it or its list was in no global
    tag, None if the change says who added it.
    """

    global_tag: str
    payload_type: str
    payload_list: str | None
    reason: Reason
    row: dict[str, Any] | None
    change: GlobalTagChange | None
    replaced: dict[str, Any] | None
    added_by: str | None


@dataclass(frozen=True, slots=True)
class _Tag:
    """A global tag in a state. `number` is the number of the change that made it, None for the present."""

    name: str
    state: State
    id: int
    number: int | None
    payload_types: list[str]


def explain(
    *, tags: Sequence[TagState], moment: Moment, payload_types: Collection[str]
) -> tuple[list[State], list[Explanation]]:
    """The states of one or several tags, and the explanations for their payload types, in byte order.

    If `payload_types` is not empty, the explanations are for these instead. A payload type has one for each tag, in their order,
    up to the first tag in which a payload is valid. The caller must be in a snapshot. Raises `GlobalTagNotFoundError`,
    `PayloadTypeNotFoundError`, and for the past the errors of `find_past`.
    """
    found = [_find(*tag) for tag in tags]
    names = {name for tag in found for name in tag.payload_types}
    if payload_types:
        check_payload_types(payload_types, names)
        names = set(payload_types)
    explanations: list[Explanation] = []
    for tag in found:
        reasons = _explain(tag, moment, names)
        explanations += reasons
        names = names - {reason.payload_type for reason in reasons if reason.reason is Reason.VALID}
    # The sort is stable, so that the order of the tags remains.
    explanations.sort(key=lambda one: one.payload_type.encode())
    return [tag.state for tag in found], explanations


def _find(tag: str, as_of: AsOf | None) -> _Tag:
    if as_of is not None:
        past = find_past(tag, as_of)
        names = [payload_list.payload_type for payload_list in past_lists(past)]
        return _Tag(tag, past_state(past.version, as_of), past.tag_id, past.number, names)
    state = read_state(tag, None)
    tag_id = GlobalTag.objects.values_list("id", flat=True).get(name=tag)
    names = list(PayloadList.objects.filter(global_tag=tag_id).values_list("payload_type__name", flat=True))
    return _Tag(tag, state, tag_id, None, names)


def _explain(tag: _Tag, moment: Moment, payload_types: Collection[str]) -> list[Explanation]:
    parameters = {
        "tag_id": tag.id,
        "number": tag.number,
        "payload_types": list(payload_types),
        "major": moment.major,
        "minor": moment.minor,
        "inclusive": Mode(settings.CDB_IOV_MODE) is Mode.DISCRETE,
    }
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in fetch_all(WALK, parameters)]
    walks = [list(steps) for _, steps in groupby(rows, key=lambda row: row["payload_type"])]
    changes = _changes(tag.id, [began for walk in walks if (began := _began(walk)) is not None])
    creators = _creators([(walk[0]["iov_id"], walk[0]["list_id"]) for walk in walks])
    return [_explanation(tag.name, walk, changes, creators) for walk in walks]


def _creators(rows: list[tuple[int | None, int | None]]) -> dict[int, str]:
    """The clients that created rows, which are given with their lists. A row that a list shares has none there."""
    lists = {iov_id: list_id for iov_id, list_id in rows if iov_id is not None}
    found = PayloadIOV.objects.filter(id__in=lists, creator__isnull=False)
    return {
        iov_id: creator
        for iov_id, creator, list_id in found.values_list("id", "creator", "payload_list_id")
        if creator and list_id in (None, lists[iov_id])
    }


def _began(walk: Sequence[dict[str, Any]]) -> int | None:
    """The number of the change since which the payload of the first step is there."""
    same = [step for step in walk if step["is_same"]]
    began: int | None = same[-1]["began"]
    return began


def _changes(tag_id: int, numbers: list[int]) -> dict[int, GlobalTagChange]:
    found = GlobalTagChange.objects.filter(tag_id=tag_id, number__in=numbers)
    return {change.number: change for change in found}


def _explanation(
    tag: str, walk: Sequence[dict[str, Any]], changes: dict[int, GlobalTagChange], creators: dict[int, str]
) -> Explanation:
    first, last = walk[0], walk[-1]
    replaced = last if not last["is_same"] and last["is_valid"] else None
    if first["list_id"] is None:
        reason = Reason.NO_PAYLOAD_LIST
    elif first["iov_id"] is None:
        reason = Reason.NOT_STARTED
    else:
        reason = Reason.VALID if first["is_valid"] else Reason.ENDED
    began = _began(walk)
    change = changes.get(began) if began is not None and (reason is Reason.VALID or replaced) else None
    row = None if first["iov_id"] is None else first
    return Explanation(
        tag, first["payload_type"], first["list_name"], reason, row, change, replaced, creators.get(first["iov_id"])
    )
