"""CPU time, memory, file descriptors and threads of the service's programs, from one pass over /proc."""

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Names of the root processes; descendants without a name of their own have the name of their root.
SERVE, HARNESS, POSTGRES, GENERATOR = "serve", "harness", "postgres", "generator"
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


def all_processes() -> dict[int, Stat]:
    """Every process of the machine by its pid."""
    with os.scandir(PROC) as entries:
        stats = [_stat(entry.name) for entry in entries if entry.name.isdigit()]
    return {stat.pid: stat for stat in stats if stat}


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


def memory_of(pid: int) -> tuple[int, int]:
    """Private resident bytes of a process, and those shared with others (files, and PostgreSQL's buffers).

    Raises `OSError` if it does not exist.
    """
    _, resident, shared, *_ = map(int, (PROC / str(pid) / "statm").read_bytes().split())
    return (resident - shared) * PAGE_BYTES, shared * PAGE_BYTES


def files_of(pid: int) -> int:
    """The number of open file descriptors. Raises `OSError` if there is no such process or no permission."""
    path = PROC / str(pid) / "fd"
    # From Linux 6.2 the size of the directory is the number of descriptors; older kernels report 0.
    return path.stat().st_size or sum(1 for _ in path.iterdir())


class Programs:
    """Columns by program.

    The programs are nginx, gunicorn-lookups, gunicorn-others (gunicorn with `manage.py run`), pgbouncer,
    postgres, serve (the supervisor), generator (the locust processes) and harness (this harness). `roots` has the
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
        shared = [self._add_state(columns, stat) for stat in ours.values()]
        columns[f"memory.{POSTGRES}"] += max(shared, default=0)
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

    def _add_state(self, columns: dict[str, float], stat: Stat) -> int:
        """Add the other columns of a process; returns the shared memory of a process of PostgreSQL, otherwise 0."""
        name = self._name(stat)
        try:
            (own, shared), files = memory_of(stat.pid), files_of(stat.pid)
        except OSError:
            return 0
        for column, value in (("memory", own), ("files", files), ("threads", stat.threads), ("processes", 1)):
            columns[f"{column}.{name}"] += value
        return shared if name == POSTGRES else 0

    def _name(self, stat: Stat) -> str:
        return self._known[stat.pid, stat.born]

    def _program(self, stat: Stat, found: Mapping[int, Stat]) -> str | None:
        """The program of a process, or None if it does not descend from a root.

        A process that was just forked from `serve` or from this harness may execute another program soon, so
        these are checked again each time.
        """
        known = self._known.get((stat.pid, stat.born))
        if known and known not in (SERVE, HARNESS):
            return known
        place: Stat | None = stat
        while place is not None and place.pid not in self._roots:
            place = found.get(place.parent)
        if place is None:
            return None
        root = self._roots[place.pid]
        self._known[stat.pid, stat.born] = root if place is stat else _program_of(stat, root)
        return self._name(stat)


def _program_of(stat: Stat, root: str) -> str:
    """The program of a descendant of `root`, by its name and command line."""
    if root not in (SERVE, HARNESS):
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
    return GENERATOR if root == HARNESS and "locust" in words else root
