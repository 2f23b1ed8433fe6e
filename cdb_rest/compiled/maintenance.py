"""The maintenance of the compiled tags of this host: which tags are compiled, and which compiled tags are deleted."""

import contextlib
import fcntl
import logging
import os
import shutil
import time
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from cdb_rest import named_sql
from cdb_rest.compiled import directory, usage
from cdb_rest.compiled.compiler import compile_tag, database_identity
from cdb_rest.compiled.manifest import Manifest, UnusableError, read_manifest
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.observe import metrics
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.status import Status

logger = logging.getLogger(__name__)
VALIDITY = named_sql.load("compiled_validity")
SIZES = named_sql.load("compile_sizes")

# What a lookup in a compiled tag that is not frozen costs more than the database's own lookup, in payload lists of the latter: it
# asks what has changed. So it pays only for tags with more lists.
ASKING_LISTS = 15
# CPU time of PostgreSQL for one payload list of a lookup, and of a compilation: at least, and for each row. All in seconds.
LIST_SECONDS = 10e-6
LEAST_SECONDS, ROW_SECONDS = 1.0, 4e-6
# A row takes about so many bytes.
ROW_BYTES = 290
# A tag is compiled again when PostgreSQL has spent as much time on its changed lists as compiling takes. So both together take at
# most twice the time of the best choice, whatever changes and whatever is asked. The first time it is compiled much sooner,
# because it is likely that a tag that is asked will be asked again.
FIRST_SHARE = 0.1
# After a failure, a tag is not compiled for this time.
PAUSE_SECONDS = 600
# Several services may look after the same directory in turn.
LOCK = "lock"


class Maintenance:
    """Looks after the compiled tags of this host, if no other process does."""

    def __init__(self) -> None:
        self._lock: int | None = None
        self._manifests: dict[str, Manifest] = {}
        self._pauses: dict[str, float] = {}

    def step(self) -> None:
        """Do what is necessary now, and compile at most one tag. Raises `OSError`, or `django.db.DatabaseError`."""
        if self._lock is None and not self._take_lock():
            return
        directory.remove_abandoned()
        for path in directory.paths():
            if not directory.is_sealed(path):
                self._verify(path)
        self._read_manifests(directory.paths())
        self._keep_to_budget()
        try:
            self._remove_untrue()
            tag = self._choose()
        except DatabaseError:
            # Without the database nothing can be said, and nothing has to be done.
            connection.close()
            raise
        if tag is not None:
            self._compile(tag)
        metrics.COMPILED_TAGS.set(len(self._manifests))
        metrics.COMPILED_BYTES.set(sum(manifest.size for manifest in self._manifests.values()))

    def _take_lock(self) -> bool:
        directory.root().mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(Path(settings.CDB_COMPILED_DIR) / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def _read_manifests(self, paths: list[Path]) -> None:
        known, self._manifests = self._manifests, {}
        for path in paths:
            try:
                self._manifests[path.name] = known.get(path.name) or read_manifest(path)
            except FileNotFoundError:
                continue
            except UnusableError as error:
                self._remove(path.name, str(error))

    def _keep_to_budget(self) -> None:
        """Delete the compiled tags that were used least recently, if all of them are too large."""
        use = usage.read().use
        total = sum(manifest.size for manifest in self._manifests.values())

        def last(name: str) -> float:
            return max(use[name].last if name in use else 0, self._manifests[name].compiled.timestamp())

        for name in sorted(self._manifests, key=last):
            if total <= settings.CDB_COMPILED_BYTES:
                break
            total -= self._manifests[name].size
            self._remove(name, "CDB_COMPILED_BYTES is exceeded")

    def _remove_untrue(self) -> None:
        """Delete the compiled tags of another database, of tags that are gone, and of revisions that cannot be asked for."""
        if not self._manifests:
            return
        database = database_identity()
        if database is None:
            return
        names = list(self._manifests)
        manifests = list(self._manifests.values())
        values = {
            "names": [item.tag for item in manifests],
            "versions": [item.version for item in manifests],
            "tag_ids": [item.tag_id for item in manifests],
            "revisions": [item.revision for item in manifests],
            "changed": [item.changed for item in manifests],
            "pasts": [item.is_past for item in manifests],
            "frozens": [item.status == Status.FROZEN for item in manifests],
        }
        true = {position - 1 for (position,) in fetch_all(VALIDITY, values)}
        for index, (name, manifest) in enumerate(zip(names, manifests, strict=True)):
            if manifest.database != database:
                self._remove(name, "it was made from another database")
            elif index not in true:
                self._remove(name, "its tag or revision does not exist any more")

    def _choose(self) -> str | None:
        """The tag that is to be compiled now, None if there is none: the one that saves most time."""
        now = time.time()
        demand = {
            tag: one.at(now) for tag, one in usage.read().demand.items() if self._pauses.get(tag, 0) < time.monotonic()
        }
        if not demand:
            return None
        compiled = {manifest.tag for manifest in self._manifests.values() if not manifest.is_past}
        best, most = None, 1.0
        for tag, lists, rows, is_frozen in fetch_all(SIZES, {"names": list(demand)}):
            saved = lists if is_frozen else max(0, lists - ASKING_LISTS)
            spent = LIST_SECONDS * (demand[tag].lookups * saved + demand[tag].lists)
            needed = (LEAST_SECONDS + ROW_SECONDS * rows) * (1 if tag in compiled else FIRST_SHARE)
            if spent / needed >= most and self._has_space(tag, ROW_BYTES * rows):
                best, most = tag, spent / needed
        return best

    def _has_space(self, tag: str, size: int) -> bool:
        if size > settings.CDB_COMPILED_BYTES:
            reason = f"it would take {size:,} bytes, more than CDB_COMPILED_BYTES"
        elif shutil.disk_usage(directory.root()).free < 2 * size:
            reason = f"the disk does not have twice {size:,} bytes"
        else:
            return True
        logger.warning("global tag %s is not compiled: %s", tag, reason)
        self._pauses[tag] = time.monotonic() + PAUSE_SECONDS
        return False

    def _compile(self, tag: str) -> None:
        begin = time.monotonic()
        try:
            compile_tag(tag, share=_background_share())
        except (CdbError, UnusableError, OSError, DatabaseError) as error:
            logger.error("global tag %s could not be compiled: %s", tag, " ".join(str(error).split()))
            self._pauses[tag] = time.monotonic() + PAUSE_SECONDS
            outcome = "failure"
            connection.close()
        else:
            logger.info("compiled global tag %s in %.1f s", tag, time.monotonic() - begin)
            outcome = "success"
            with usage.changing() as whole:
                whole.demand.pop(tag, None)
        metrics.COMPILATIONS.labels(outcome).inc()
        metrics.COMPILE_SECONDS.inc(time.monotonic() - begin)

    def _verify(self, path: Path) -> None:
        """Compare the files with their checksums, and let the service use them; or delete them."""
        try:
            directory.verify(path)
        except UnusableError as error:
            self._remove(path.name, str(error))

    def _remove(self, name: str, reason: str) -> None:
        logger.info("compiled tag %s is deleted: %s", name, reason)
        self._manifests.pop(name, None)
        with contextlib.suppress(FileNotFoundError):
            directory.remove(directory.root() / name)


def _background_share() -> float:
    """The number of cores that the maintenance may use: a fortieth of this machine, and at most one core.

    PostgreSQL needs as much again for the rows that it sends.
    """
    return min(1, len(os.sched_getaffinity(0)) / 40)
