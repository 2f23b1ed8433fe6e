"""The change log: increments the revisions of global tags and the versions of payload lists, and records who changed them."""

from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.models import ChangeAction, PayloadList
from cdb_rest.observe import metrics
from cdb_rest.rules.access import Origin

LOCK_REVISIONS = named_sql.load("lock_revisions")
RECORD = named_sql.load("record_changes")


@dataclass
class TagChange:
    """A change of one tag.

    - `has_other_lists`: whether lists were attached to the tag, detached or deleted.
    - `removed`, `added`: the numbers of IOVs that the change removes and adds.
    - `source`: for a clone or a scenario, where the IOVs come from, as a JSON object.
    """

    has_other_lists: bool = False
    removed: int = 0
    added: int = 0
    source: dict[str, Any] | None = None


class Changes:
    """Changes that one call of `record` records: a version of each list, and a change log entry for each tag."""

    def __init__(self) -> None:
        self._tags: dict[int, TagChange] = {}
        self._lists: set[int] = set()

    def of_tag(self, tag_id: int) -> TagChange:
        """The change of a tag. The first call creates an empty one, which is recorded even if it stays empty."""
        return self._tags.setdefault(tag_id, TagChange())

    def of_list(self, payload_list: PayloadList, *, removed: int = 0, added: int = 0) -> None:
        """Note that rows of a list change, and how many IOVs are removed and added. The list must be locked."""
        self._lists.add(payload_list.id)
        if payload_list.global_tag_id is not None:
            change = self.of_tag(payload_list.global_tag_id)
            change.removed += removed
            change.added += added

    def attach(self, payload_list: PayloadList, tag_id: int) -> None:
        """Note that a list comes into a tag, with its present IOVs."""
        change = self.of_tag(tag_id)
        change.has_other_lists = True
        change.added += payload_list.iov_count

    def detach(self, payload_list: PayloadList) -> None:
        """Note that a list leaves its tag, with its present IOVs. Call it before the list is changed."""
        if payload_list.global_tag_id is not None:
            change = self.of_tag(payload_list.global_tag_id)
            change.has_other_lists = True
            change.removed += payload_list.iov_count

    def record(self, action: ChangeAction, origin: Origin) -> dict[str, int]:
        """Record the changes as one write. Returns the new revisions by tag name.

        Call it once, in the transaction of the write, after the changes are stored, but before a tag is deleted: a tag
        that does not exist gets no entry. Call it late, because other writers of the tags wait from here until the
        commit. After a restoration, or if a former tag had the same name, a revision may increase by more than one.
        """
        ids = sorted(self._tags)
        if not ids and not self._lists:
            return {}
        parts = [self._tags[tag_id] for tag_id in ids]
        if origin.request is not None:
            for part in parts:
                part.source = (part.source or {}) | {"request": origin.request, "requested_by": origin.requested_by}
        with connection.cursor() as cursor:
            if len(ids) > 1:
                cursor.execute(LOCK_REVISIONS, {"tag_ids": ids})
            cursor.execute(
                RECORD,
                {
                    "list_ids": sorted(self._lists),
                    "tag_ids": ids,
                    "has_other_lists": [part.has_other_lists for part in parts],
                    "sources": [part.source and orjson.dumps(part.source).decode() for part in parts],
                    "iovs_before": [part.removed for part in parts],
                    "iovs_after": [part.added for part in parts],
                    "actor": origin.actor,
                    "action": action,
                    "comment": origin.comment,
                },
            )
            revisions = dict(cursor.fetchall())
        transaction.on_commit(lambda: _count(action, parts))
        return revisions


def _count(action: ChangeAction, parts: list[TagChange]) -> None:
    metrics.CHANGES.labels(action).inc(len(parts))
    metrics.CHANGED_IOVS.labels("removed").inc(sum(part.removed for part in parts))
    metrics.CHANGED_IOVS.labels("added").inc(sum(part.added for part in parts))
