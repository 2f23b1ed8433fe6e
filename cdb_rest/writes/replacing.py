"""Other rows for a payload list, such as those that it had in the past: how they differ from its rows, and how it gets them."""

from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Any

from cdb_rest.models import PAYLOAD_COLUMNS, PayloadIOV, PayloadList
from cdb_rest.models.payload_iov import payload_of
from cdb_rest.rules.moment import Moment
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.history import ListChange, next_version, supersede
from cdb_rest.writes.rows import insert_rows, new_iov, place_rows
from cdb_rest.writes.sharing import stored_rows, unshare

INTERVAL_COLUMNS = ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
COLUMNS = (*INTERVAL_COLUMNS, *PAYLOAD_COLUMNS.values())
columns_of = attrgetter(*COLUMNS)


class Replacement:
    """Other rows for the list `target`.

    `read` returns these rows, by start, as dictionaries with the columns of `PayloadIOV`; `id` may be None. It is called by the
    constructor, and may be called again. Without a target (None), a new list is to get the rows. The target must be locked, and
    the caller must be in a transaction.

    `stored` returns the rows of the target that are compared with them; None stands for all. If these are not all, both must have
    each row that differs, and the unchanged rows before and after it. The target must not share rows then.

    `count` is the number of the rows. `removed` and `added` are the numbers of rows that `apply` removes from the target and adds
    to it. A row whose interval changes counts as both.
    """

    def __init__(
        self,
        target: PayloadList | None,
        read: Callable[[], Iterable[dict[str, Any]]],
        stored: Callable[[], Iterable[PayloadIOV]] | None = None,
    ) -> None:
        self._target, self._source, self._compared = target, read, stored
        self._read()

    def _read(self) -> None:
        target = self._target
        stored = self._compared() if self._compared else stored_rows(target) if target else []
        self._stored = {_start(iov): iov for iov in stored}
        # In the order of their starts. A row that the target has is the object in `_stored`, any other one a new object.
        self._wanted = [self._row(columns) for columns in self._source()]
        self._unchanged = {iov.id for iov in self._wanted if self._stored.get(_start(iov)) is iov}
        self.count = len(self._wanted)
        self.removed = len(self._stored) - len(self._unchanged)
        self.added = self.count - len(self._unchanged)

    def _row(self, columns: dict[str, Any]) -> PayloadIOV:
        stored = self._stored.get(Moment(columns["major_iov"], columns["minor_iov"]))
        # A copy with another id is not a difference.
        if stored is not None and columns_of(stored) == tuple(columns[name] for name in COLUMNS):
            return stored
        return new_iov({name: columns[name] for name in ("id", *COLUMNS)})

    @property
    def stored(self) -> Collection[PayloadIOV]:
        """The rows of the target that are compared, in the order of their starts."""
        return self._stored.values()

    @property
    def wanted(self) -> list[PayloadIOV]:
        """The other rows, in the order of their starts."""
        return self._wanted

    @property
    def differ(self) -> bool:
        """Whether the other rows are not those of the target."""
        return bool(self.removed or self.added)

    def apply(self, payload_list: PayloadList, changes: Changes) -> list[PayloadIOV]:
        """Give the rows to the list, which is the target or new, and add the change to `changes`.

        Rows of the list that are not among them are detached. A row keeps its id, if it is detached or in the list, or if no IOV
        has that id now. Otherwise it gets a new id. Call it only once, and only if the rows `differ`. Returns the rows that were
        detached.
        """
        if self._target is not None and unshare([self._target]):
            # What differs is the same, but the copies have other ids.
            self._read()
        coming = [iov for iov in self._wanted if self._stored.get(_start(iov)) is not iov]
        reused = self._lock_reusable(coming)
        placed = [iov for iov in coming if iov.id in reused]
        inserted = [iov for iov in coming if iov.id not in reused]
        _release_taken_ids(inserted)
        # The other stored rows are detached first, because a start must be free before another row gets it.
        staying = self._unchanged | {iov.id for iov in placed if _start(iov) == reused[iov.id]}
        leaving = [iov for iov in self._stored.values() if iov.id not in staying]
        before, after = _with_starts(self._stored.values()), _with_starts(self._wanted)
        grown = supersede([ListChange(payload_list, before, after)], changes)
        for iov in leaving:
            iov.payload_list, iov.added_in = None, 0
        for iov in coming:
            iov.payload_list, iov.added_in = payload_list, next_version(payload_list)
        # In this order, no start is used twice at any moment.
        place_rows(leaving)
        place_rows([*placed, *grown])
        insert_rows(inserted)
        # One that comes back with another start was detached, too, but only meanwhile.
        return [iov for iov in leaving if iov.id not in reused]

    def _lock_reusable(self, coming: Collection[PayloadIOV]) -> dict[int, Moment | None]:
        """The ids of IOVs that can come back as they are stored, with their present start in the list (None: detached).

        Those that are detached are locked. An id is not reused if the IOV has another payload now.
        """
        detached = PayloadIOV.objects.filter(id__in=[iov.id for iov in coming], payload_list=None)
        candidates = {iov.id: iov for iov in detached.order_by("id").select_for_update()}
        candidates |= {iov.id: iov for iov in self._stored.values() if iov.id not in self._unchanged}
        return {
            iov.id: _start(found) if found.payload_list_id else None
            for iov in coming
            if (found := candidates.get(iov.id)) and payload_of(found) == payload_of(iov)
        }


def _release_taken_ids(iovs: Collection[PayloadIOV]) -> None:
    """Take the ids that stored IOVs have from new rows, so that these get new ones."""
    taken = set(PayloadIOV.objects.filter(id__in=[iov.id for iov in iovs]).values_list("id", flat=True))
    for iov in iovs:
        if iov.id in taken:
            iov.pk = None


def _start(iov: PayloadIOV) -> Moment:
    return Moment(iov.major_iov, iov.minor_iov)


def _with_starts(iovs: Iterable[PayloadIOV]) -> list[tuple[Moment, PayloadIOV]]:
    return [(_start(iov), iov) for iov in iovs]
