"""Raising the revisions of global tags, and writing down what changed."""

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
    """What a change takes away from a tag, or adds to it: facts such as its status, and payload IOVs.

    The IOVs are documents, or all that a list holds, which the database puts in.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    iovs: list[dict[str, Any]] = field(default_factory=list)
    whole_list: PayloadList | None = None

    @property
    def count(self) -> int:
        """The number of IOVs."""
        return len(self.iovs) + (self.whole_list.iov_count if self.whole_list else 0)

    def text(self) -> str:
        """The document of this side as JSON, without those of a whole list."""
        return orjson.dumps(self.facts | ({"payload_iovs": self.iovs} if self.iovs else {})).decode()

    def add_list(self, payload_list: PayloadList) -> None:
        """Add a list with all that it holds."""
        self.facts["payload_lists"] = {payload_list.payload_type.name: payload_list.name}
        self.whole_list = payload_list


@dataclass
class TagChange:
    """A change of one tag: what it takes away, and what it adds."""

    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)


class Changes:
    """The changes of one request, by tag. What happens in lists of no tag changes no answer and is left out."""

    def __init__(self) -> None:
        self._tags: dict[int, TagChange] = defaultdict(TagChange)

    def of_tag(self, tag_id: int) -> TagChange:
        """The change of that tag, empty at first."""
        return self._tags[tag_id]

    def remove_iov(self, payload_list: PayloadList, iov: PayloadIOV) -> None:
        """Note that an IOV as it is now goes from its list."""
        if payload_list.global_tag_id is not None:
            self.of_tag(payload_list.global_tag_id).before.iovs.append(iov_document(payload_list, iov))

    def add_iov(self, payload_list: PayloadList, iov: PayloadIOV) -> None:
        """Note that an IOV as it is now comes into a list."""
        if payload_list.global_tag_id is not None:
            self.of_tag(payload_list.global_tag_id).after.iovs.append(iov_document(payload_list, iov))

    def add_list(self, payload_list: PayloadList) -> None:
        """Note that an empty list comes into a tag."""
        if payload_list.global_tag_id is not None:
            lists = self.of_tag(payload_list.global_tag_id).after.facts.setdefault("payload_lists", {})
            lists[payload_list.payload_type.name] = payload_list.name

    def record(self, action: ChangeAction, origin: Origin) -> dict[str, int]:
        """Raise the revision of each changed tag and write the log; returns the revisions by name of the tag.

        The last thing that a write does: from here to its commit, other writers of the tag wait.
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


def _count(action: ChangeAction, parts: "list[TagChange]") -> None:
    counts.CHANGES.labels(action).inc(len(parts))
    counts.CHANGED_IOVS.labels("removed").inc(sum(part.before.count for part in parts))
    counts.CHANGED_IOVS.labels("added").inc(sum(part.after.count for part in parts))


def iov_document(payload_list: PayloadList, iov: PayloadIOV) -> dict[str, Any]:
    """An IOV of a list as the change log has it; its start says which row of the list it is."""
    return {
        "id": iov.id,
        "payload_list": payload_list.name,
        **payload_columns.payload_document(iov),
        "major_iov": iov.major_iov,
        "minor_iov": iov.minor_iov,
        "major_iov_end": iov.major_iov_end,
        "minor_iov_end": iov.minor_iov_end,
    }
