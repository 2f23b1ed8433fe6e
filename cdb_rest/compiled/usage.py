"""The use of tags on this host, in a file that all processes share. It decides which tags are compiled and which are deleted."""

import contextlib
import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from cdb_rest.compiled import directory

FILE = "usage.json"
# What was counted counts for half after this time.
HALF_LIFE_SECONDS = 3600
# Only the tags that were asked last are kept.
MOST_TAGS = 1000


@dataclass
class Demand:
    """Lookups in a tag that PostgreSQL answered: those that it answered wholly, and the changed lists that it read for others.

    `time` is when they were counted last, in seconds.
    """

    lookups: float = 0
    lists: float = 0
    time: float = 0

    def at(self, now: float) -> "Demand":
        """The demand as it counts at a later time."""
        rest = 0.5 ** (max(0, now - self.time) / HALF_LIFE_SECONDS)
        return Demand(self.lookups * rest, self.lists * rest, now)


@dataclass
class Use:
    """The use of a compiled tag: the number of lookups, and the time of the last one in seconds."""

    lookups: int = 0
    last: float = 0


@dataclass
class Usage:
    """The demand by the names of tags, and the use of compiled tags by the names of their directories."""

    demand: dict[str, Demand] = field(default_factory=dict)
    use: dict[str, Use] = field(default_factory=dict)

    def add(self, demand: Mapping[str, tuple[int, int]], use: Mapping[str, int]) -> None:
        """Add what a process has counted since the last time."""
        now = time.time()
        for tag, (lookups, lists) in demand.items():
            before = self.demand.get(tag, Demand()).at(now)
            self.demand[tag] = Demand(before.lookups + lookups, before.lists + lists, now)
        for name, lookups in use.items():
            self.use[name] = Use(self.use.get(name, Use()).lookups + lookups, now)
        last = sorted(self.demand, key=lambda tag: self.demand[tag].time, reverse=True)[:MOST_TAGS]
        self.demand = {tag: self.demand[tag] for tag in last}
        existing = {path.name for path in directory.paths()}
        self.use = {name: one for name, one in self.use.items() if name in existing}


def read() -> Usage:
    """The usage until now; nothing if the file is missing or damaged."""
    try:
        values: dict[str, dict[str, dict[str, Any]]] = json.loads(_path().read_bytes())
        return Usage(
            {tag: Demand(**one) for tag, one in values["demand"].items()},
            {name: Use(**one) for name, one in values["use"].items()},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Usage()


@contextlib.contextmanager
def changing() -> Iterator[Usage]:
    """The usage, which the block may change; other processes wait meanwhile. Raises `OSError`."""
    _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _path().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        usage = read()
        yield usage
        part = _path().with_suffix(".part")
        part.write_text(json.dumps(asdict(usage)))
        part.replace(_path())


def _path() -> Path:
    return Path(settings.CDB_COMPILED_DIR) / FILE
