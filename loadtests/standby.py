"""A real streaming replica of an embedded server, that can be hurt: for tests and measurements of reading from replicas."""

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2

from cdb.embedded import postgres_binaries
from cdb.embedded.postgres_process import PostgresProcess
from cdb.processes import directories

USER = DATABASE = "cdb"
CATCH_UP_SECONDS = 120
# No less than any primary of ours has, or the replica would not start.
CONNECTIONS = "500"


class Standby:
    """A replica, in `directory`, of the embedded server of the data directory `data`, which keeps its log for it by a slot.

    `options` are settings beside our own, by name; `data` is its data directory, `log` the file that it writes to.
    """

    def __init__(
        self, data: Path, directory: Path, name: str = "standby", options: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = directory / "server.log"
        self._primary = data.resolve() / "postgres" / "socket"
        self._directory = directory
        self.data = directory / "data"
        self._sockets = directory / "socket"
        self._process = PostgresProcess(
            data=self.data,
            log=self.log,
            socket_directory=self._sockets,
            options={
                "listen_addresses": "",
                "port": postgres_binaries.PORT,
                "max_connections": CONNECTIONS,
                "jit": "off",
                # Reads are cancelled rather than that replaying waits for them for long.
                "max_standby_streaming_delay": "2s",
                "hot_standby_feedback": "on",
            }
            | (options or {}),
        )

    @property
    def url(self) -> str:
        """The libpq URL of the database on the replica."""
        return _url(self._sockets)

    @contextlib.contextmanager
    def running(self) -> Iterator["Standby"]:
        """Inside the block the replica exists, and runs unless it was stopped."""
        self._make()
        try:
            self.start()
            yield self
        finally:
            for process in self._processes():
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(self._processes(), timeout=30)
            with contextlib.suppress(psycopg2.Error):
                self._on(_url(self._primary), "SELECT pg_drop_replication_slot(%s)", self.name)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if not self._process.is_running():
            self._process.start()

    def kill(self) -> None:
        """End all of its processes at once, as when its machine loses power."""
        processes = self._processes()
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(processes, timeout=30)

    def stop(self) -> None:
        """Stop it in good order."""
        self._process.stop()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Inside the block it takes connections and says nothing."""
        processes = self._processes()
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def lagging(self) -> Iterator[None]:
        """Inside the block it gets all and replays nothing; others may let it replay meanwhile."""
        self.lag()
        try:
            yield
        finally:
            self.go_on()

    def lag(self) -> None:
        """Let it replay nothing, though it gets all."""
        self._on(self.url, "SELECT pg_wal_replay_pause()")

    def go_on(self) -> None:
        """Let it replay again."""
        self._on(self.url, "SELECT pg_wal_replay_resume()")

    def promote(self) -> None:
        """Make it a primary of its own."""
        self._on(self.url, "SELECT pg_promote()")

    def wait_until_caught_up(self) -> None:
        """Return when it has replayed all that the primary has written by now."""
        position = self._on(_url(self._primary), "SELECT pg_current_wal_flush_lsn()::text")
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while not self._on(self.url, "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", position):
            if time.monotonic() > deadline:
                raise TimeoutError("the replica does not catch up")
            time.sleep(0.02)

    def _make(self) -> None:
        for directory in (self._directory, self.data, self._sockets):
            directories.make_private(directory, postgres_binaries.account())
        postgres_binaries.allow_traversal(self.data)
        postgres_binaries.run(
            "pg_basebackup", "--pgdata", str(self.data), "--host", str(self._primary), "--username", USER,
            "--wal-method", "stream", "--checkpoint", "fast", "--write-recovery-conf", "--create-slot", "--slot", self.name,
        )  # fmt: skip

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.cwd() == str(self.data.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    @staticmethod
    def _on(url: str, statement: str, *values: str) -> object:
        with contextlib.closing(psycopg2.connect(url, connect_timeout=5)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.fetchone()[0]


def _url(sockets: Path) -> str:
    return f"postgresql://{USER}@/{DATABASE}?host={quote(str(sockets))}&port={postgres_binaries.PORT}"
