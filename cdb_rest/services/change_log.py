"""The change log: increments the revisions of global tags, and records what changed."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.domain.origin import Origin
from cdb_rest.metrics import counts
from cdb_rest.models import ChangeAction, PayloadIOV, PayloadList
from cdb_rest.services import payload_columns

LOCK_REVISIONS = named_sql.load("lock_revisions")
RECORD = payload_columns.load("record_changes")


@dataclass
class Side:
    """One side of a change, `before` or `after`: what the change removes from a tag, or what it adds.

    - `facts`: attributes such as the status and the payload lists. The values must be JSON values.
    - `iovs`: single payload IOVs, as documents.
    - `whole_list`: a payload list with all of its IOVs, instead of `iovs`. `record` reads these IOVs from the database.
      The list's `iov_count` must be current.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    iovs: list[dict[str, Any]] = field(default_factory=list)
    whole_list: PayloadList | None = None

    @property
    def count(self) -> int:
        """The number of IOVs."""
        return len(self.iovs) + (self.whole_list.iov_count if self.whole_list else 0)

    def text(self) -> str:
        """The document of this side as JSON, without the IOVs of `whole_list`."""
        return orjson.dumps(self.facts | ({"payload_iovs": self.iovs} if self.iovs else {})).decode()

    def add_list(self, payload_list: PayloadList) -> None:
        """Set the only payload list of this side, with all of its IOVs. It replaces lists that were added before."""
        self.facts["payload_lists"] = {payload_list.payload_type.name: payload_list.name}
        self.whole_list = payload_list


@dataclass
class TagChange:
    """A change of one tag: what it removes (`before`) and what it adds (`after`)."""

    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)


class Changes:
    """Changes that one call of `record` writes: one change log entry for each tag.

    The methods ignore payload lists that are detached, because these belong to no tag.
    """

    def __init__(self) -> None:
        self._tags: dict[int, TagChange] = defaultdict(TagChange)

    def of_tag(self, tag_id: int) -> TagChange:
        """The change of a tag. The first call creates an empty one, which is recorded even if it stays empty."""
        return self._tags[tag_id]

    def remove_iov(self, payload_list: PayloadList, iov: PayloadIOV) -> None:
        """Note that `iov` leaves `payload_list`. Call it before the attributes of `iov` change."""
        if payload_list.global_tag_id is not None:
            self.of_tag(payload_list.global_tag_id).before.iovs.append(iov_document(payload_list, iov))

    def add_iov(self, payload_list: PayloadList, iov: PayloadIOV) -> None:
        """Note that `iov` is now in `payload_list`. Call it when `iov` has its id and its new attributes."""
        if payload_list.global_tag_id is not None:
            self.of_tag(payload_list.global_tag_id).after.iovs.append(iov_document(payload_list, iov))

    def add_list(self, payload_list: PayloadList) -> None:
        """Note that `payload_list` is now in its tag, without its IOVs."""
        if payload_list.global_tag_id is not None:
            lists = self.of_tag(payload_list.global_tag_id).after.facts.setdefault("payload_lists", {})
            lists[payload_list.payload_type.name] = payload_list.name

    def record(self, action: ChangeAction, origin: Origin) -> dict[str, int]:
        """Increment the revision of each changed tag, and write its entry. Returns the new revisions by tag name.

        Call it once, in the transaction of the write, after the changes are stored, but before a tag is deleted: a tag
        that does not exist gets no entry. Call it late, because other writers of the tags wait from here until the
        commit. After a restoration, or if a former tag had the same name, a revision may increase by more than one.

        Raises a database error if an entry is too large; `write` translates it into `ChangeTooLargeError`.
        """
        ids = sorted(self._tags)
        if not ids:
            return {}
        parts = [self._tags[tag_id] for tag_id in ids]
        with connection.cursor() as cursor:
            if len(ids) > 1:
                cursor.execute(LOCK_REVISIONS, {"tag_ids": ids})
            cursor.execute(
                RECORD,
                {
                    "tag_ids": ids,
                    "befores": [part.before.text() for part in parts],
                    "afters": [part.after.text() for part in parts],
                    "iovs_before": [part.before.count for part in parts],
                    "iovs_after": [part.after.count for part in parts],
                    "lists_before": [part.before.whole_list and part.before.whole_list.id for part in parts],
                    "lists_after": [part.after.whole_list and part.after.whole_list.id for part in parts],
                    "actor": origin.actor,
                    "action": action,
                    "comment": origin.comment,
                },
            )
            transaction.on_commit(lambda: _count(action, parts))
            return dict(cursor.fetchall())


def _count(action: ChangeAction, parts: list[TagChange]) -> None:
    counts.CHANGES.labels(action).inc(len(parts))
    counts.CHANGED_IOVS.labels("removed").inc(sum(part.before.count for part in parts))
    counts.CHANGED_IOVS.labels("added").inc(sum(part.after.count for part in parts))


def iov_document(payload_list: PayloadList, iov: PayloadIOV) -> dict[str, Any]:
    """The document of an IOV in the change log. A payload list has at most one IOV with a given start."""
    return {
        "id": iov.id,
        "payload_list": payload_list.name,
        **payload_columns.payload_document(iov),
        "major_iov": iov.major_iov,
        "minor_iov": iov.minor_iov,
        "major_iov_end": iov.major_iov_end,
        "minor_iov_end": iov.minor_iov_end,
    }
