"""The numbers of processes and threads of granian and gunicorn, by CDB_WORKERS, CDB_THREADS and the cores of this machine."""

from cdb import env
from cdb.processes import machine


def lookup_workers(cores: int = 0) -> int:
    """The processes of granian: one more than cores, because a process does not use the CPU all the time.

    One with DEBUG, because the debug toolbar keeps its records in the memory of a process.
    """
    values = env.read()
    return values["CDB_WORKERS"] or (1 if values["DEBUG"] else (cores or machine.cores()) + 1)


def other_workers(cores: int = 0) -> int:
    """The processes of gunicorn: half as many, but at least two, so that one remains while the other is replaced."""
    return max(2, (lookup_workers(cores) + 1) // 2)


def threads() -> int:
    """The threads of each process."""
    return int(env.read()["CDB_THREADS"])


def other_threads(cores: int = 0) -> int:
    """The threads of all processes of gunicorn."""
    return other_workers(cores) * threads()
