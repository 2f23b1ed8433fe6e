"""The states of tags that this process answers from packs, and a thread that finds new packs and records the use of tags."""

import logging
import threading
import time
from collections import defaultdict
from contextlib import nullcontext

from django.conf import settings
from django.db import Error, connection

from cdb_rest import named_sql
from cdb_rest.compiled import demand
from cdb_rest.compiled.pack import OpenPacks, Pack
from cdb_rest.compiled.state import read_state
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.connections import durability
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.observe import metrics
from cdb_rest.rules.errors import CdbError

logger = logging.getLogger(__name__)
VALID = named_sql.load("compiled_validity")
CHECK_INTERVAL_SECONDS = 0.5
# The process learns no states for so long after the primary has failed.
PAUSE_SECONDS = 5.0
# More would take memory for tags and revisions that are rarely asked. A state of 200 lists takes some 100 KB.
MOST_STATES = 1000
# If this part of the lists is missing, PostgreSQL is as fast.
MOST_MISSING = 0.9

Name = tuple[str, int | None]


class Registry:
    """The states and the packs of a process. All threads may use it; `refresh`, `confirm` and `flush` are for one of them."""

    def __init__(self) -> None:
        self._is_enabled = False
        self.forget()

    def enable(self) -> None:
        """Let this process use packs, if the settings permit it. Starts a thread, which does not survive a fork."""
        if settings.CDB_COMPILED_BYTES and not self._is_enabled:
            self._is_enabled = True
            threading.Thread(target=self._run, name="compiled lists", daemon=True).start()

    def forget(self) -> None:
        """Close all packs, and forget all states and what was counted."""
        self._files = OpenPacks()
        self._packs: tuple[Pack, ...] = ()
        # None for a revision that was asked for once.
        self._known: dict[Name, CompiledTag | None] = {}
        self._demand: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._used: set[Pack] = set()
        self._paused = 0.0

    def find(self, tag: str, revision: int | None = None) -> CompiledTag | None:
        """What the packs have of the last known state of a tag, or of a revision; None if that is nothing, or not enough."""
        compiled = self._known.get((tag, revision))
        if compiled is None:
            return None
        if not compiled.is_intact():
            self._drop_damaged()
        if compiled.packs is not self._packs:
            compiled = self._known[tag, revision] = CompiledTag(compiled.state, self._packs)
        most = 0 if revision else MOST_MISSING * len(compiled.state.ids)
        return compiled if not compiled.missing or len(compiled.missing) < most else None

    def note_whole(self, tag: str, revision: int | None, version: str) -> None:
        """Count a lookup that PostgreSQL answered wholly in this version, and learn the lists of the tag, or of the revision."""
        if self._is_enabled:
            self.learn(tag, revision, version)
            if revision is None:
                self._demand[tag][0] += 1

    def learn(self, tag: str, revision: int | None = None, version: str | None = None) -> None:
        """Read the state of a tag if it is not known in this version, or of a revision when it is asked for the second time."""
        name, known, compiled = (tag, revision), self._known.get((tag, revision)), None
        is_known = known and (revision or known.state.version == version)
        if is_known or not self._packs or time.monotonic() < self._paused:
            return
        if revision is None or name in self._known:
            # The change and the lists of a revision are read by two statements.
            is_many = revision and not connection.in_atomic_block
            try:
                with snapshot() if is_many else nullcontext():
                    state = read_state(tag, revision)
            except CdbError:
                return
            except Error:
                # A replica has answered. Lookups must not wait for the primary again and again.
                self._paused = time.monotonic() + PAUSE_SECONDS
                return
            if state is None or state.database is None:
                return
            compiled = CompiledTag(state, self._packs)
            if state.is_fixed:
                # The files alone answer once it is durable.
                durability.is_durable(state.version)
        while len(self._known) >= MOST_STATES:
            self._known.pop(next(iter(self._known)), None)
        self._known[name] = compiled

    def note_use(self, compiled: CompiledTag) -> None:
        """Count a lookup that was answered from packs, but for the missing lists."""
        self._used.update(part.pack for part in compiled.parts)
        if compiled.missing:
            self._demand[compiled.state.tag][1] += len(compiled.missing)

    def refresh(self) -> None:
        """Open new packs, and close those that are gone. Raises `OSError`."""
        if self._files.refresh():
            self._packs = tuple(self._files.values())

    def confirm(self) -> None:
        """Forget the frozen tags and past revisions that cannot be asked for any more. Raises `django.db.Error`."""
        fixed = {name: known.state for name, known in list(self._known.items()) if known and known.state.is_fixed}
        if not fixed:
            return
        columns = ("database", "tag", "tag_id", "revision", "version", "status")
        values = {column: [getattr(state, column) for state in fixed.values()] for column in columns}
        valid = {position - 1 for (position,) in fetch_all(VALID, values)}
        for place, name in enumerate(fixed):
            if place not in valid:
                self._known.pop(name, None)

    def flush(self) -> None:
        """Store what was used, and add what was counted to the demand of this host. Raises `OSError`."""
        used, self._used = self._used, set()
        for pack in used:
            pack.note_use()
        counted, self._demand = self._demand, defaultdict(lambda: [0, 0])
        if counted:
            demand.append(counted)

    def _drop_damaged(self) -> None:
        for pack in self._packs:
            # Otherwise it was deleted.
            if not pack.is_intact() and pack.path.exists():
                logger.warning("a file of compiled lists was changed: %s", pack.path.name)
                metrics.COMPILED_DAMAGED.inc()
        self._packs = tuple(pack for pack in self._packs if pack.is_intact())

    def _run(self) -> None:
        reason = ""
        while True:
            before, reason = reason, ""
            try:
                self.refresh()
                self.flush()
                self.confirm()
            except OSError as error:
                reason = str(error)
                if reason != before:
                    logger.warning("the compiled lists of this host cannot be read: %s", reason)
            except Error:
                # Without the database nothing can be said.
                connection.close()
            except Exception:
                # The thread must go on: it is the only one that notices new and deleted packs.
                logger.exception("reading the compiled lists of this host failed")
            time.sleep(CHECK_INTERVAL_SECONDS)


registry = Registry()
