"""The compiled tags that this process uses, and a thread that finds new ones and records their use."""

import logging
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

from django.conf import settings

from cdb_rest.compiled import directory, usage
from cdb_rest.compiled.manifest import UnusableError, read_manifest
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.observe import metrics

logger = logging.getLogger(__name__)
CHECK_INTERVAL_SECONDS = 0.5


class Registry:
    """The open compiled tags of a process. All threads may use it; `refresh` and `flush` are for one of them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Close all compiled tags, and forget what was counted."""
        self._open: dict[str, CompiledTag] = {}
        self._present: dict[str, CompiledTag] = {}
        self._past: dict[tuple[str, int], CompiledTag] = {}
        self._demand: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._use: Counter[str] = Counter()
        self._seen: dict[str, int] = {}

    def find(self, tag: str, revision: int | None = None) -> CompiledTag | None:
        """The compiled tag for lookups in the present state of a tag, or in a revision; None if there is none."""
        found = self._present.get(tag) if revision is None else self._past.get((tag, revision))
        if found is None or found.is_intact():
            return found
        self._drop(found)
        return None

    def note_whole(self, tag: str) -> None:
        """Count a lookup that PostgreSQL answered wholly."""
        self._demand[tag][0] += 1

    def note_use(self, compiled: CompiledTag, lists: int = 0) -> None:
        """Count a lookup that was answered with a compiled tag, and with so many lists from PostgreSQL."""
        self._use[compiled.path.name] += 1
        if lists:
            self._demand[compiled.manifest.tag][1] += lists

    def refresh(self) -> None:
        """Open new compiled tags, and close those that are gone. Raises `OSError`."""
        seen = directory.seals()
        if seen == self._seen and all(compiled.is_intact() for compiled in self._open.values()):
            return
        found: dict[str, CompiledTag] = {}
        for path in directory.paths():
            known = self._open.get(path.name)
            opened = known if known is not None and known.is_intact() else self._try(path)
            if opened:
                found[path.name] = opened
        self._open = found
        # Of tags with the same name, one of which was deleted, the one that was compiled last counts.
        newest_last = sorted(found.values(), key=lambda one: one.manifest.compiled)
        self._present = {compiled.manifest.tag: compiled for compiled in newest_last if not compiled.manifest.is_past}
        self._past = {
            (compiled.manifest.tag, compiled.manifest.revision): compiled
            for compiled in newest_last
            if compiled.manifest.past_version is not None
        }
        self._seen = seen

    def flush(self) -> None:
        """Add what was counted to the usage of this host. Raises `OSError`."""
        demand, self._demand = self._demand, defaultdict(lambda: [0, 0])
        use, self._use = self._use, Counter()
        if demand or use:
            with usage.changing() as whole:
                whole.add({tag: (lookups, lists) for tag, (lookups, lists) in demand.items()}, use)

    def _drop(self, compiled: CompiledTag) -> None:
        manifest = compiled.manifest
        # Otherwise it was deleted as a whole, for example because a new one has taken its place.
        if compiled.path.exists():
            logger.warning("the files of a compiled tag were changed: %s", compiled.path.name)
            metrics.COMPILED_DAMAGED.inc()
        self._open.pop(compiled.path.name, None)
        self._present.pop(manifest.tag, None)
        self._past.pop((manifest.tag, manifest.revision), None)
        self._seen = {}

    @staticmethod
    def _try(path: Path) -> CompiledTag | None:
        try:
            compiled = CompiledTag(path, read_manifest(path))
            # One that is not sealed is verified first (`cdb_rest.compiled.maintenance`). Asked after opening, so that it holds
            # for the open files.
            if not directory.is_sealed(path):
                return None
            compiled.load()
            return compiled
        except FileNotFoundError:
            return None
        except (UnusableError, OSError) as error:
            logger.warning("the compiled tag %s cannot be used: %s", path.name, error)
            return None


registry = Registry()
_is_enabled = False


def enable() -> None:
    """Let this process use compiled tags, if the settings permit it. Starts a thread, which does not survive a fork."""
    global _is_enabled
    if settings.CDB_COMPILED_BYTES and not _is_enabled:
        _is_enabled = True
        threading.Thread(target=_run, name="compiled tags", daemon=True).start()


def note_whole(tag: str) -> None:
    """Count a lookup in the present that PostgreSQL answered wholly."""
    if _is_enabled:
        registry.note_whole(tag)


def find(tag: str, revision: int | None = None) -> CompiledTag | None:
    """The compiled tag for lookups in a tag, or in a revision of it; None if there is none."""
    return registry.find(tag, revision) if _is_enabled else None


def _run() -> None:
    reason = ""
    while True:
        before, reason = reason, ""
        try:
            registry.refresh()
            registry.flush()
        except OSError as error:
            reason = str(error)
            if reason != before:
                logger.warning("the compiled tags of this host cannot be read: %s", reason)
        except Exception:
            # The thread must go on: it is the only one that notices new and deleted compiled tags.
            logger.exception("reading the compiled tags of this host failed")
        time.sleep(CHECK_INTERVAL_SECONDS)
