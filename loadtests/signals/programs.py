"""CPU time, memory, file descriptors and threads of the service's programs, from one pass over /proc."""

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
# Names of the root processes; descendants without a name of their own have the name of their root.
SERVE, RIG, POSTGRES, GENERATOR = "serve", "rig", "postgres", "generator"
MASTER = "cdb.serving.gunicorn_master"


class Stat(NamedTuple):
    """A line of /proc/<pid>/stat; CPU times are in ticks.

    `children_user` and `children_system` are those of children that have ended and been waited for. `born` is
    the start time, which distinguishes processes that had the same pid one after the other.
    """

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
    """Resident bytes of a process: private ones, and those shared with others (files, and PostgreSQL's buffers)."""

    own: int
    shared: int


def all_processes() -> dict[int, Stat]:
    """Every process of the machine by its pid."""
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
    # The name of a program may contain spaces and parentheses.
    name, _, rest = text.partition(b"(")[2].rpartition(b")")
    words = rest.split()
    numbers = (int(words[place]) for place in (11, 12, 13, 14, 17))
    return Stat(int(pid), name.decode(errors="replace"), int(words[1]), int(words[19]), *numbers)


def memory_of(pid: int) -> Memory:
    """The memory of a process. Raises `OSError` if it does not exist."""
    words = (PROC / str(pid) / "statm").read_bytes().split()
    resident, shared = int(words[1]), int(words[2])
    return Memory((resident - shared) * PAGE_BYTES, shared * PAGE_BYTES)


def files_of(pid: int) -> int:
    """The number of open file descriptors. Raises `OSError` if there is no such process or no permission."""
    path = PROC / str(pid) / "fd"
    # From Linux 6.2 the size of the directory is the number of descriptors; older kernels report 0.
    return path.stat().st_size or sum(1 for _ in path.iterdir())


class Programs:
    """Columns by program.

    The programs are nginx, gunicorn-lookups, gunicorn-others (gunicorn with `manage.py run`), pgbouncer,
    postgres, serve (the supervisor), generator (the locust processes) and rig (this harness). `roots` has the
    program of each root process by pid. A descendant belongs to the program that its command line shows, or
    else to that of its root.
    """

    def __init__(self, roots: Mapping[int, str]) -> None:
        self._roots = dict(roots)
        self._known: dict[tuple[int, int], str] = {}
        self._before: dict[int, Stat] = {}
        self._when = 0.0

    def read(self) -> dict[str, float]:
        """`memory.<program>` in bytes, `files.`, `threads.` and `processes.<program>`, and the CPU since the last call.

        The CPU is `cpu.<program>.user` and `.system`, in cores; the first call returns none.
        """
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
        """Add the CPU columns.

        When a process has ended and been waited for, its whole CPU time is in the children time of its parent.
        The part that was counted while it lived is subtracted, so that it does not count twice.
        """
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
        """The program of a process, or None if it does not descend from a root.

        A process that was just forked from `serve` or from this harness may execute another program soon, so
        these are checked again each time.
        """
        known = self._known.get((stat.pid, stat.born))
        if known and known not in (SERVE, RIG):
            return known
        root = self._root(stat, found)
        if root is not None:
            self._known[stat.pid, stat.born] = root if stat.pid in self._roots else _program_of(stat, root)
            return self._name(stat)
        return None

    def _root(self, stat: Stat, found: Mapping[int, Stat]) -> str | None:
        place: Stat | None = stat
        while place is not None:
            if place.pid in self._roots:
                return self._roots[place.pid]
            place = found.get(place.parent)
        return None


def _program_of(stat: Stat, root: str) -> str:
    """The program of a descendant of `root`, by its name and command line."""
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
