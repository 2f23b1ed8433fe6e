"""The change log: raises the revisions of global tags and records what changed."""

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

    - `facts`: attributes such as the status and the payload lists.
    - `iovs`: single payload IOVs, as documents.
    - `whole_list`: a payload list with all of its IOVs; the database generates their documents.
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
        """Add a list with all of its IOVs."""
        self.facts["payload_lists"] = {payload_list.payload_type.name: payload_list.name}
        self.whole_list = payload_list


@dataclass
class TagChange:
    """A change of one tag: what it removes (`before`) and what it adds (`after`)."""

    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)


class Changes:
    """The changes of one request, by tag.

    Changes of detached lists are ignored, because they do not affect any response.
    """

    def __init__(self) -> None:
        self._tags: dict[int, TagChange] = defaultdict(TagChange)

    def of_tag(self, tag_id: int) -> TagChange:
        """The change of a tag. It is created empty at the first call."""
        return self._tags[tag_id]

    def remove_iov(self, payload_list: PayloadList, iov: PayloadIOV) -> None:
        """Record the removal of an IOV from its list, with its current values."""
        if payload_list.global_tag_id is not None:
            self.of_tag(payload_list.global_tag_id).before.iovs.append(iov_document(payload_list, iov))

    def add_iov(self, payload_list: PayloadList, iov: PayloadIOV) -> None:
        """Record the insertion of an IOV into a list, with its current values."""
        if payload_list.global_tag_id is not None:
            self.of_tag(payload_list.global_tag_id).after.iovs.append(iov_document(payload_list, iov))

    def add_list(self, payload_list: PayloadList) -> None:
        """Record the addition of an empty list to its tag."""
        if payload_list.global_tag_id is not None:
            lists = self.of_tag(payload_list.global_tag_id).after.facts.setdefault("payload_lists", {})
            lists[payload_list.payload_type.name] = payload_list.name

    def record(self, action: ChangeAction, origin: Origin) -> dict[str, int]:
        """Raise the revision of each changed tag and write the log. Returns the new revisions by tag name.

        Call this last in a write, because other writers of the tags wait from here until the commit.
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
    """The document of an IOV in the change log. Its start identifies the row within its list."""
    return {
        "id": iov.id,
        "payload_list": payload_list.name,
        **payload_columns.payload_document(iov),
        "major_iov": iov.major_iov,
        "minor_iov": iov.minor_iov,
        "major_iov_end": iov.major_iov_end,
        "minor_iov_end": iov.minor_iov_end,
    }
