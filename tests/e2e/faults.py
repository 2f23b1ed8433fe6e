"""Faults that tests cause in a running service and remove again."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import psutil
import psycopg2

from tests.e2e.service import Service

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


def database_processes(service: Service) -> list[psutil.Process]:
    """PostgreSQL's processes of a service."""
    data = str(service.data.resolve() / "postgres" / "data")
    return [process for process, directory in service.ask_each(psutil.Process.cwd).items() if directory == data]


@contextmanager
def frozen_database(service: Service) -> Iterator[None]:
    """Inside the block PostgreSQL takes connections, as its socket is there, and never says a word."""
    processes = database_processes(service)
    assert processes
    try:
        _signal(processes, signal.SIGSTOP)
        yield
    finally:
        _signal(processes, signal.SIGCONT)


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        # One of autovacuum's may have ended.
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@contextmanager
def locked(service: Service, table: str) -> Iterator[psycopg2.extensions.connection]:
    """Inside the block another connection, which is returned, has a lock on the table that stops all reads and writes."""
    with closing(psycopg2.connect(f"postgresql://cdb@/cdb?host={service.data}/postgres/socket")) as holder:
        holder.cursor().execute(f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE')
        yield holder


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.monotonic()
    call()
    return time.monotonic() - begin
