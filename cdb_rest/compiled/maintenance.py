"""The maintenance of the compiled lists of this host: which lists are compiled, and which packs are deleted."""

import fcntl
import logging
import os
import shutil
import time
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, connection

from cdb_rest import named_sql
from cdb_rest.compiled import demand
from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.pack import OpenPacks, UnusableError, remove, remove_abandoned, root
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
HALF_LIFE_SECONDS = 3600
# After a failure, a tag is not compiled for this time.
PAUSE_SECONDS = 600
# Several services may look after the same directory in turn.
LOCK = "lock"


@dataclass
class _Wanted:
    """What PostgreSQL answered of a tag since it was compiled: whole lookups, and missing lists; counted last at a time."""

    lookups: float = 0
    lists: float = 0
    counted: float = 0


class Maintenance:
    """Looks after the packs of this host, if no other process does."""

    def __init__(self) -> None:
        self._lock: int | None = None
        self._packs = OpenPacks()
        self._wanted: dict[str, _Wanted] = {}
        self._pauses: dict[str, float] = {}
        # The time from which the compiler may work again; since when it works, and the rows that it had read then.
        self._rested = self._worked = 0.0
        self._rows = 0

    def step(self) -> None:
        """Do what is necessary now, and compile lists of at most one tag. Raises `OSError`, or `django.db.DatabaseError`."""
        if self._lock is None and not self._take_lock():
            return
        remove_abandoned()
        self._packs.refresh()
        self._keep_to_budget()
        self._count_demand()
        try:
            if self._packs:
                self._remove_foreign()
            tag = self._choose() if time.monotonic() > self._rested else None
        except DatabaseError:
            # Without the database nothing can be said, and nothing has to be done.
            connection.close()
            raise
        if tag is not None:
            self._compile(tag)
        metrics.COMPILED_PACKS.set(len(self._packs))
        metrics.COMPILED_BYTES.set(sum(pack.size for pack in self._packs.values()))

    def _take_lock(self) -> bool:
        root().mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(root() / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _remove(self, name: str, reason: str) -> None:
        remove(self._packs.pop(name).path, reason)

    def _keep_to_budget(self) -> None:
        """Delete the packs that were used least recently, if all of them are too large."""
        total = sum(pack.size for pack in self._packs.values())
        for name, pack in sorted(self._packs.items(), key=lambda item: item[1].last_use()):
            if total <= settings.CDB_COMPILED_BYTES:
                break
            total -= pack.size
            self._remove(name, "CDB_COMPILED_BYTES is exceeded")

    def _remove_foreign(self) -> None:
        """Delete the packs of another database, for example of the one before a restoration."""
        database = database_identity()
        for name, pack in list(self._packs.items()):
            if database not in (None, pack.database):
                self._remove(name, "it was made from another database")

    def _count_demand(self) -> None:
        now = time.monotonic()
        for counted in demand.take():
            for tag, (lookups, lists) in counted.items():
                wanted = self._wanted.setdefault(tag, _Wanted(counted=now))
                rest = 0.5 ** ((now - wanted.counted) / HALF_LIFE_SECONDS)
                self._wanted[tag] = _Wanted(wanted.lookups * rest + lookups, wanted.lists * rest + lists, now)
        self._wanted = {tag: one for tag, one in self._wanted.items() if now - one.counted < 10 * HALF_LIFE_SECONDS}

    def _choose(self) -> str | None:
        """The tag that is to be compiled now, None if there is none: one with missing lists, or the one that saves most time."""
        now = time.monotonic()
        wanted = {tag: one for tag, one in self._wanted.items() if self._pauses.get(tag, 0) < now}
        if missing := [tag for tag, one in wanted.items() if one.lists]:
            return max(missing, key=lambda tag: wanted[tag].lists)
        best, most = None, 1.0
        for tag, lists, rows, is_frozen in fetch_all(SIZES, {"names": list(wanted)}) if wanted else ():
            saved = lists if is_frozen else max(0, lists - ASKING_LISTS)
            needed = FIRST_SHARE * (LEAST_SECONDS + ROW_SECONDS * rows)
            gain = LIST_SECONDS * wanted[tag].lookups * saved / needed
            if gain >= most and self._has_space(tag, ROW_BYTES * rows):
                best, most = tag, gain
        return best

    def _has_space(self, tag: str, size: int) -> bool:
        if size > settings.CDB_COMPILED_BYTES:
            reason = f"it would take {size:,} bytes, more than CDB_COMPILED_BYTES"
        elif shutil.disk_usage(root()).free < 2 * size:
            reason = f"the disk does not have twice {size:,} bytes"
        else:
            return True
        logger.warning("global tag %s is not compiled: %s", tag, reason)
        self._pauses[tag] = time.monotonic() + PAUSE_SECONDS
        return False

    def _compile(self, tag: str) -> None:
        begin = self._worked = time.monotonic()
        self._rows = 0
        try:
            done = compile_tag(tag, packs=self._packs.values(), progress=self._rest)
        except (CdbError, UnusableError, OSError, DatabaseError) as error:
            logger.error("global tag %s could not be compiled: %s", tag, " ".join(str(error).split()))
            self._pauses[tag] = time.monotonic() + PAUSE_SECONDS
            outcome = "failure"
            connection.close()
        else:
            seconds = time.monotonic() - begin
            logger.info("compiled %d payload lists of global tag %s in %.1f s", done.lists, tag, seconds)
            outcome = "success"
        self._wanted.pop(tag, None)
        self._rested = time.monotonic() + REST * (time.monotonic() - self._worked)
        metrics.COMPILATIONS.labels(outcome).inc()
        metrics.COMPILE_SECONDS.inc(time.monotonic() - begin)

    def _rest(self, rows: int) -> None:
        """Sleep after each part of a large compilation, so that lookups have the processors."""
        if rows - self._rows >= ROWS_AT_ONCE:
            time.sleep(REST * (time.monotonic() - self._worked))
            self._rows, self._worked = rows, time.monotonic()
