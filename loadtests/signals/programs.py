"""CPU time, memory, file descriptors and threads of the service's programs."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import psutil

# Names of the root processes; descendants without a name of their own have the name of their root.
SERVE, HARNESS, POSTGRES, GENERATOR, COMPILER = "serve", "harness", "postgres", "generator", "compiler"
MASTER = "cdb.serving.gunicorn_master"


class Used(NamedTuple):
    """The parent of a process, and its CPU seconds, those of children that have ended and been waited for included."""

    parent: int
    user: float
    system: float


class Programs:
    """Columns by program.

    The programs are nginx, gunicorn-lookups, gunicorn-others (gunicorn with `manage.py run`), pgbouncer,
    postgres, serve (the supervisor), compiler (commands that the service starts for compiled tags), generator (the
    locust processes) and harness (this harness). `roots` has the program of each root process by pid, a root before
    those that descend from it. A descendant belongs to the
    program that its command line shows, or else to that of its root.
    """

    def __init__(self, roots: Mapping[int, str]) -> None:
        self._roots = {psutil.Process(pid): program for pid, program in roots.items()}
        # A process is equal to another one only if it has the same pid and the same start time.
        self._known: dict[psutil.Process, str] = {}
        self._before: dict[psutil.Process, Used] = {}
        self._when = 0.0

    def read(self) -> dict[str, float]:
        """`memory.<program>` in bytes, `files.`, `threads.` and `processes.<program>`, and the CPU since the last call.

        The memory is private resident memory. Pages that a process shares with its parent count for each; PostgreSQL's
        shared memory counts once.
        The CPU is `cpu.<program>.user` and `.system`, in cores; the first call returns none.
        """
        columns: dict[str, float] = defaultdict(float)
        used, shared, now = {}, 0, time.monotonic()
        self._known = self._programs()
        for process, name in self._known.items():
            with contextlib.suppress(psutil.Error), process.oneshot():
                cpu, memory = process.cpu_times(), process.memory_info()
                user, system = cpu.user + cpu.children_user, cpu.system + cpu.children_system
                used[process] = Used(process.ppid(), user, system)
                state = {"memory": memory.rss - memory.shared, "files": process.num_fds()}
                for column, value in (state | {"threads": process.num_threads(), "processes": 1}).items():
                    columns[f"{column}.{name}"] += value
                shared = max(shared, memory.shared if name == POSTGRES else 0)
        columns[f"memory.{POSTGRES}"] += shared
        if self._when:
            self._add_cpu(columns, used, now - self._when)
        self._before, self._when = used, now
        return dict(columns)

    def _add_cpu(self, columns: dict[str, float], used: Mapping[psutil.Process, Used], seconds: float) -> None:
        """Add the CPU columns.

        When a process has ended and been waited for, its whole CPU time is in the children time of its parent.
        The part that was counted while it lived is subtracted, so that it does not count twice.
        """
        for place, kind in enumerate(("user", "system"), 1):
            gone: dict[int, float] = defaultdict(float)
            for process, before in self._before.items():
                if process not in used:
                    gone[before.parent] += before[place]
            for process, after in used.items():
                before_it = self._before[process][place] if process in self._before else 0.0
                rise = after[place] - before_it - gone[process.pid]
                columns[f"cpu.{self._known[process]}.{kind}"] += max(0.0, rise) / seconds

    def _programs(self) -> dict[psutil.Process, str]:
        """The program of each process that descends from a root.

        A process that was just forked from `serve` or from this harness may execute another program soon, so
        these are checked again each time.
        """
        found: dict[psutil.Process, str] = {}
        for root, program in self._roots.items():
            with contextlib.suppress(psutil.Error):
                family = {child: self._known.get(child, program) for child in root.children(recursive=True)}
                found |= {
                    child: _program_of(child, program) if name in (SERVE, HARNESS) else name
                    for child, name in family.items()
                }
                found[root] = program
        return found


def _program_of(process: psutil.Process, root: str) -> str:
    """The program of a descendant of `root`, by its name and command line."""
    if root not in (SERVE, HARNESS):
        return root
    try:
        name, words = process.name(), process.cmdline()
    except psutil.Error:
        return root
    if root == HARNESS:
        return GENERATOR if "locust" in words else root
    if "--background" in words:
        return COMPILER
    if MASTER in words:
        return f"gunicorn-{words[words.index(MASTER) + 1]}"
    return name if name in ("nginx", "pgbouncer") else "gunicorn" if any("gunicorn" in word for word in words) else root
