"""The maintenance of the compiled lists of this host: which lists are compiled, and which packs are deleted."""

import logging
import shutil
import time
from collections import Counter

from django.conf import settings
from django.db import DatabaseError, connection

from cdb_rest import named_sql
from cdb_rest.compiled import demand
from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.pack import OpenPacks, Pack, UnusableError, remove_abandoned, root
from cdb_rest.compiled.state import database_identity
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.observe import metrics
from cdb_rest.rules.errors import CdbError

logger = logging.getLogger(__name__)
SIZES = named_sql.load("compile_sizes")

# What a lookup from packs in a tag that is not frozen costs more than PostgreSQL's own lookup, in payload lists of the latter: it
# asks for the state of the tag. So it pays only for tags with more lists.
ASKING_LISTS = 15
# CPU time of PostgreSQL for one payload list of a lookup, and of a compilation: at least, and for each row. All in seconds.
LIST_SECONDS = 10e-6
LEAST_SECONDS, ROW_SECONDS = 1.0, 4e-6
# A row takes about so many bytes.
ROW_BYTES = 290
# A tag is compiled when PostgreSQL has spent this part of the time of a compilation on it: it is likely to be asked again.
FIRST_SHARE = 0.1
# After each part of so many rows, and after each compilation, the compiler rests so many times as long as it took.
ROWS_AT_ONCE, REST = 200_000, 10
# After a failure, a tag is not compiled for this time.
PAUSE_SECONDS = 600


class Maintenance:
    """Looks after the packs of this host."""

    def __init__(self) -> None:
        self._packs = OpenPacks()
        # What PostgreSQL answered since the tag was compiled: whole lookups, and missing lists.
        self._lookups, self._lists = Counter[str](), Counter[str]()
        self._pauses: dict[str, float] = {}
        # The time from which the compiler may work again; since when it works, and the rows that it had read then.
        self._rested = self._worked = 0.0
        self._rows = 0

    def step(self) -> None:
        """Do what is necessary now, and compile lists of at most one tag. Raises `OSError`, or `django.db.DatabaseError`."""
        remove_abandoned()
        self._packs.refresh()
        for counted in demand.take():
            for tag, (lookups, lists) in counted.items():
                self._lookups[tag] += lookups
                self._lists[tag] += lists
        try:
            self._remove_packs()
            chosen = self._choose() if time.monotonic() > self._rested else None
        except DatabaseError:
            # Without the database nothing can be said, and nothing has to be done.
            connection.close()
            raise
        if chosen is not None:
            self._compile(chosen)
        metrics.COMPILED_PACKS.set(len(self._packs))
        metrics.COMPILED_BYTES.set(sum(pack.size for pack in self._packs.values()))

    def _remove_packs(self) -> None:
        """Delete the packs of another database, and, if all packs are too large, those that were used least recently."""
        database = database_identity()
        total = sum(pack.size for pack in self._packs.values())
        for pack in sorted(self._packs.values(), key=Pack.last_use):
            if database not in (None, pack.database):
                self._packs.remove(pack.path.name, "it was made from another database")
            elif total > settings.CDB_COMPILED_BYTES:
                total -= pack.size
                self._packs.remove(pack.path.name, "CDB_COMPILED_BYTES is exceeded")

    def _choose(self) -> str | None:
        """The tag that is to be compiled now, None if there is none: one with missing lists, or the one that saves most time."""
        now = time.monotonic()
        if missing := [tag for tag, lists in self._lists.most_common() if lists and self._pauses.get(tag, 0) < now]:
            return missing[0]
        asked = [tag for tag in self._lookups if self._pauses.get(tag, 0) < now]
        best, most = None, 1.0
        for tag, lists, rows, is_frozen in fetch_all(SIZES, {"names": asked}) if asked else ():
            saved = lists if is_frozen else max(0, lists - ASKING_LISTS)
            needed = FIRST_SHARE * (LEAST_SECONDS + ROW_SECONDS * rows)
            gain = LIST_SECONDS * self._lookups[tag] * saved / needed
            if gain >= most and self._has_space(tag, ROW_BYTES * rows):
                best, most = tag, gain
        return best

    def _has_space(self, tag: str, size: int) -> bool:
        if size <= min(settings.CDB_COMPILED_BYTES, shutil.disk_usage(root()).free / 2):
            return True
        logger.warning("tag %s is not compiled: %d bytes are too many for CDB_COMPILED_BYTES or the disk", tag, size)
        self._pauses[tag] = time.monotonic() + PAUSE_SECONDS
        return False

    def _compile(self, tag: str) -> None:
        begin = self._worked = time.monotonic()
        self._rows = 0
        try:
            _, lists, _, _ = compile_tag(tag, packs=self._packs.values(), progress=self._rest)
        except (CdbError, UnusableError, OSError, DatabaseError) as error:
            logger.error("global tag %s could not be compiled: %s", tag, " ".join(str(error).split()))
            self._pauses[tag] = time.monotonic() + PAUSE_SECONDS
            outcome = "failure"
            connection.close()
        else:
            logger.info("compiled %d lists of global tag %s in %.1f s", lists, tag, time.monotonic() - begin)
            outcome = "success"
        del self._lookups[tag], self._lists[tag]
        self._rested = time.monotonic() + REST * (time.monotonic() - self._worked)
        metrics.COMPILATIONS.labels(outcome).inc()
        metrics.COMPILE_SECONDS.inc(time.monotonic() - begin)

    def _rest(self, rows: int) -> None:
        """Sleep after each part of a large compilation, so that lookups have the processors."""
        if rows - self._rows >= ROWS_AT_ONCE:
            time.sleep(REST * (time.monotonic() - self._worked))
            self._rows, self._worked = rows, time.monotonic()
