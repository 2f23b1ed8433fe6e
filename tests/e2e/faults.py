"""Faults that tests cause in a running service and remove again."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import psutil
import psycopg2

from tests.e2e.service import JobClient, Service

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


@contextmanager
def occupied(service: Service) -> Iterator[None]:
    """Inside the block both threads of the service wait for a lock that another connection holds."""
    with locked(service, "PayloadType") as holder, ThreadPoolExecutor(2) as pool:
        writes = [
            pool.submit(JobClient(service.port).call, "POST", "pt", {"name": f"Occupying{number}"})
            for number in range(2)
        ]
        time.sleep(0.5)
        yield
        holder.rollback()
        assert [write.result()[0] for write in writes] == [200, 200]


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def respond_to_all(service: Service) -> bool:
    """Whether all of 400 lookups, 24 at a time, get 200, so that each thread of each process has a connection."""
    with ThreadPoolExecutor(24) as pool:
        return set(pool.map(lambda _: JobClient(service.port).call("GET", LOOKUP)[0], range(400))) == {200}


def wait_for_recovery(service: Service) -> None:
    """Wait until each thread of each process responds again.

    Each process tries one connection first, and its other requests get 504 meanwhile.
    """
    deadline = time.monotonic() + 60
    while not respond_to_all(service):
        assert time.monotonic() < deadline
