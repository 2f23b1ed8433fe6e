"""CPU time, memory, file descriptors and threads of the service's programs."""

import contextlib
from collections import defaultdict
from collections.abc import Mapping

import psutil

from loadtests.signals.rates import Rates

# Names of the root processes; descendants without a name of their own have the name of their root.
SERVE, HARNESS, POSTGRES, GENERATOR, COMPILER = "serve", "harness", "postgres", "generator", "compiler"
PROGRAMS = ("nginx", "granian", "gunicorn")


class Programs:
    """Columns by program.

    The programs are nginx, granian, gunicorn, postgres, serve (supervisord, or `manage.py run`), compiler, generator (the locust
    processes) and harness (this harness). `roots` has the program of each root process by pid, a root before those that descend
    from it. A descendant belongs to the program that its command line shows, or else to that of its root.
    """

    def __init__(self, roots: Mapping[int, str]) -> None:
        self._roots = {psutil.Process(pid): program for pid, program in roots.items()}
        # A process is equal to another one only if it has the same pid and the same start time.
        self._known: dict[psutil.Process, str] = {}
        self._cpu = Rates()

    def read(self) -> dict[str, float]:
        """`memory.<program>` in bytes, `files.`, `threads.` and `processes.<program>`, and `cpu.<program>` in cores.

        The memory is private resident memory. Pages that a process shares with its parent count for each; PostgreSQL's
        shared memory counts once. The CPU is that since the last call (none at the first one), without processes that have
        ended, except for PostgreSQL: its backends may live for less than a second, and their CPU time is then in the children
        time of their parent. Children of other processes may belong to another program, such as commands that a worker starts.
        """
        columns: dict[str, float] = defaultdict(float)
        seconds: dict[str, float] = defaultdict(float)
        shared = 0
        self._known = self._programs()
        for process, name in self._known.items():
            with contextlib.suppress(psutil.Error), process.oneshot():
                cpu = process.cpu_times()
                of_ended = cpu.children_user + cpu.children_system if name == POSTGRES else 0.0
                seconds[f"cpu.{name}"] += cpu.user + cpu.system + of_ended
                memory = process.memory_info()
                state = {"memory": memory.rss - memory.shared, "files": process.num_fds()}
                for column, value in (state | {"threads": process.num_threads(), "processes": 1}).items():
                    columns[f"{column}.{name}"] += value
                shared = max(shared, memory.shared if name == POSTGRES else 0)
        columns[f"memory.{POSTGRES}"] += shared
        return columns | self._cpu.of(seconds)

    def _programs(self) -> dict[psutil.Process, str]:
        """The program of each process that descends from a root.

        A process that was just forked from `serve` or from this harness may execute another program soon, so
        these are checked again each time.
        """
        found: dict[psutil.Process, str] = {}
        for root, program in self._roots.items():
            with contextlib.suppress(psutil.Error):
                for child in root.children(recursive=True):
                    known = self._known.get(child, program)
                    found[child] = _program_of(child, program) if known in (SERVE, HARNESS) else known
                found[root] = program
        return found


def _program_of(process: psutil.Process, root: str) -> str:
    """The program of a descendant of `serve` or of the harness, by its name and command line."""
    try:
        name, words = process.name(), process.cmdline()
    except psutil.Error:
        return root
    if root == HARNESS:
        return GENERATOR if "locust" in words else root
    if COMPILER in words:
        return COMPILER
    return next((program for program in PROGRAMS if program == name or any(program in word for word in words)), root)
