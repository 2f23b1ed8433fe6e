"""CPU time, memory, descriptors and threads of the service's programs, by one pass over /proc."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What is below a root and is none of the programs that have names of their own.
SERVE, RIG, POSTGRES, GENERATOR = "serve", "rig", "postgres", "generator"
MASTER = "cdb.serving.gunicorn_master"


class Stat(NamedTuple):
    """A line of /proc/<pid>/stat: CPU times in ticks, those of children that have ended and been waited for apart; `born` tells
    processes with the same number one after the other apart."""

    pid: int
    name: str
    parent: int
    born: int
    user: int
    system: int
    children_user: int
    children_system: int
    threads: int

    @property
    def ticks(self) -> tuple[int, int]:
        """User and system time, children included."""
        return self.user + self.children_user, self.system + self.children_system


@dataclass(frozen=True)
class Memory:
    """Bytes of a process that are its own, and those it shares with others (files, and PostgreSQL's buffers)."""

    own: int
    shared: int


def all_processes() -> dict[int, Stat]:
    """Every process of the machine by its number."""
    return {stat.pid: stat for stat in _stats()}


def _stats() -> Iterator[Stat]:
    with os.scandir(PROC) as entries:
        names = [entry.name for entry in entries if entry.name.isdigit()]
    for name in names:
        if stat := _stat(name):
            yield stat


def _stat(pid: str) -> Stat | None:
    try:
        text = (PROC / pid / "stat").read_bytes()
    except OSError:
        return None
    # A program's name may have spaces and parentheses in it.
    name, _, rest = text.partition(b"(")[2].rpartition(b")")
    words = rest.split()
    numbers = (int(words[place]) for place in (11, 12, 13, 14, 17))
    return Stat(int(pid), name.decode(errors="replace"), int(words[1]), int(words[19]), *numbers)


def memory_of(pid: int) -> Memory:
    """Raises `OSError` if there is no such process."""
    words = (PROC / str(pid) / "statm").read_bytes().split()
    resident, shared = int(words[1]), int(words[2])
    return Memory((resident - shared) * PAGE_BYTES, shared * PAGE_BYTES)


def files_of(pid: int) -> int:
    """Open descriptors. Raises `OSError` if there is no such process, or it is somebody else's."""
    path = PROC / str(pid) / "fd"
    # Linux tells their number as the directory's size from 6.2 on; before that they have to be counted.
    return path.stat().st_size or sum(1 for _ in path.iterdir())


class Programs:
    """Columns by program: nginx, gunicorn-lookups, gunicorn-others (gunicorn with `manage.py run`), pgbouncer, postgres, serve
    (the supervisor), generator (locust's processes) and rig (whoever measures). `roots` names the program at each root process:
    what descends from it belongs to it, or to the program that its command line tells."""

    def __init__(self, roots: Mapping[int, str]) -> None:
        self._roots = dict(roots)
        self._known: dict[tuple[int, int], str] = {}
        self._before: dict[int, Stat] = {}
        self._when = 0.0

    def read(self) -> dict[str, float]:
        """`cpu.<program>.user` and `.system` in cores since the last call (none at the first one), `memory.`, `files.`,
        `threads.` and `processes.<program>`."""
        found, now = all_processes(), time.monotonic()
        ours = {pid: stat for pid, stat in found.items() if self._program(stat, found)}
        columns: dict[str, float] = defaultdict(float)
        if self._when:
            self._add_cpu(columns, ours, now - self._when)
        shared: dict[str, int] = defaultdict(int)
        for pid, stat in ours.items():
            self._add_state(columns, shared, pid, stat)
        columns[f"memory.{POSTGRES}"] += shared[POSTGRES]
        self._before, self._when = ours, now
        self._known = {key: name for key, name in self._known.items() if key[0] in ours}
        return dict(columns)

    def _add_cpu(self, columns: dict[str, float], ours: dict[int, Stat], seconds: float) -> None:
        """What a process did before it ended and was waited for is in its parent's time for children, whole: what was seen of
        it while it lived must not count twice."""
        gone: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for pid, stat in self._before.items():
            if pid not in ours or ours[pid].born != stat.born:
                for place, ticks in enumerate(stat.ticks):
                    gone[stat.parent][place] += ticks
        for pid, stat in ours.items():
            before = self._before.get(pid)
            since = before.ticks if before and before.born == stat.born else (0, 0)
            for place, kind in enumerate(("user", "system")):
                ticks = stat.ticks[place] - since[place] - gone[pid][place]
                columns[f"cpu.{self._name(stat)}.{kind}"] += max(0, ticks) / TICKS / seconds

    def _add_state(self, columns: dict[str, float], shared: dict[str, int], pid: int, stat: Stat) -> None:
        name = self._name(stat)
        try:
            memory, files = memory_of(pid), files_of(pid)
        except OSError:
            return
        columns[f"memory.{name}"] += memory.own
        shared[name] = max(shared[name], memory.shared)
        columns[f"files.{name}"] += files
        columns[f"threads.{name}"] += stat.threads
        columns[f"processes.{name}"] += 1

    def _name(self, stat: Stat) -> str:
        return self._known[stat.pid, stat.born]

    def _program(self, stat: Stat, found: Mapping[int, Stat]) -> str | None:
        """Whose process it is, or None if it is none of ours. A fresh copy of `serve` or of the rig may be about to become
        another program, so these are looked at again each time."""
        known = self._known.get((stat.pid, stat.born))
        if known and known not in (SERVE, RIG):
            return known
        root = self._root(stat, found)
        if root is not None:
            self._known[stat.pid, stat.born] = root if stat.pid in self._roots else _told(stat, root)
            return self._name(stat)
        return None

    def _root(self, stat: Stat, found: Mapping[int, Stat]) -> str | None:
        place: Stat | None = stat
        while place is not None:
            if place.pid in self._roots:
                return self._roots[place.pid]
            place = found.get(place.parent)
        return None


def _told(stat: Stat, root: str) -> str:
    """The program by what it calls itself."""
    if root not in (SERVE, RIG):
        return root
    if root == SERVE and stat.name in ("nginx", "pgbouncer"):
        return stat.name
    try:
        words = (PROC / str(stat.pid) / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return root
    if root == SERVE and MASTER in words:
        return f"gunicorn-{words[words.index(MASTER) + 1]}"
    if root == SERVE and any("gunicorn" in word for word in words):
        return "gunicorn"
    return GENERATOR if root == RIG and "locust" in words else root
