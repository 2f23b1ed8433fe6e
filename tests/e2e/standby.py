"""A streaming replica of an embedded server with faults, and a service that reads from it."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg2

from cdb.embedded import binaries
from cdb.processes import directories
from loadtests.harness import Database
from loadtests.service import becomes_true, frozen, kill
from loadtests.usage import processes_in
from tests.e2e.service import JobClient

USER = DATABASE = "cdb"
SLOT = "standby"
CATCH_UP_SECONDS = 120
# At least as many as the primary has; otherwise the replica does not start.
CONNECTIONS = "500"


class Standby:
    """A replica in `directory` of the embedded server in the data directory `data`, with a replication slot.

    `options` are additional PostgreSQL settings by name. The attribute `data` is the data directory of the
    replica, `log` its log file.
    """

    def __init__(self, data: Path, directory: Path, options: dict[str, str] | None = None) -> None:
        self.log = directory / "server.log"
        self._primary = data.resolve() / "postgres" / "socket"
        self._directory = directory
        self.data = directory / "data"
        self._sockets = directory / "socket"
        settings = {
            "listen_addresses": "",
            "port": binaries.PORT,
            "max_connections": CONNECTIONS,
            "jit": "off",
            # Long reads are cancelled, so that they do not delay replay.
            "max_standby_streaming_delay": "2s",
            "hot_standby_feedback": "on",
        } | (options or {})
        settings["unix_socket_directories"] = str(self._sockets)
        self._options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._database, self._source = (
            Database(f"postgresql://{USER}@/{DATABASE}?host={quote(str(sockets))}&port={binaries.PORT}")
            for sockets in (self._sockets, self._primary)
        )

    @property
    def url(self) -> str:
        """The libpq URL of the database on the replica."""
        return self._database.url

    @contextlib.contextmanager
    def running(self) -> Iterator["Standby"]:
        """Create and start the replica for the duration of the block; then kill it and drop its slot.

        That of an earlier run is removed first.
        """
        self._end()
        shutil.rmtree(self._directory, ignore_errors=True)
        try:
            self._create()
            self.start()
            yield self
        finally:
            self._end()

    def _end(self) -> None:
        self.kill()
        with contextlib.suppress(psycopg2.Error):
            self._source.value("SELECT pg_drop_replication_slot(%s)", (SLOT,))

    def start(self) -> None:
        """Start the replica if it does not run, and wait until it accepts connections."""
        if not processes_in(self.data):
            words = ("-D", str(self.data), "-l", str(self.log), "-o", self._options, "-w", "-t", str(CATCH_UP_SECONDS))
            binaries.run("pg_ctl", "start", *words)

    def kill(self) -> None:
        """Kill all processes of the replica at once, as a power failure does."""
        kill(processes_in(self.data))

    def stop(self) -> None:
        """Shut the replica down."""
        binaries.run("pg_ctl", "stop", "-D", str(self.data), "-m", "fast", "-w")

    def frozen(self) -> contextlib.AbstractContextManager[None]:
        """Freeze the replica inside the block: the kernel accepts connections, but nothing responds."""
        return frozen(processes_in(self.data))

    @contextlib.contextmanager
    def replay_paused(self) -> Iterator[None]:
        """Pause replay inside the block, while the replica still receives WAL.

        Calls inside the block may resume it earlier.
        """
        self.pause_replay()
        try:
            yield
        finally:
            self.resume_replay()

    def pause_replay(self) -> None:
        """Pause replay; the replica still receives WAL."""
        self._database.value("SELECT pg_wal_replay_pause()")

    def resume_replay(self) -> None:
        """Resume replay."""
        self._database.value("SELECT pg_wal_replay_resume()")

    def promote(self) -> None:
        """Promote the replica to a primary."""
        self._database.value("SELECT pg_promote()")

    def cut_off(self) -> None:
        """End the connection to the primary, which keeps the replication slot; the replica still answers reads."""
        self._set("primary_conninfo", "")
        if not becomes_true(
            lambda: not self._database.value("SELECT count(*) FROM pg_stat_wal_receiver"), CATCH_UP_SECONDS
        ):
            raise TimeoutError("the WAL receiver did not end")

    def leave_slot(self) -> None:
        """Receive WAL without the replication slot."""
        self._set("primary_slot_name", "")
        statement = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming' AND slot_name IS NULL"
        if not becomes_true(lambda: self._database.value(statement) == 1, CATCH_UP_SECONDS):
            raise TimeoutError("the WAL receiver did not start again")

    def _set(self, name: str, value: str) -> None:
        with self._database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            cursor.execute("SELECT pg_reload_conf()")

    def wait_until_caught_up(self) -> None:
        """Wait until the replica has replayed all WAL that the primary has flushed by now. Raises `TimeoutError`."""
        position = self._source.value("SELECT pg_current_wal_flush_lsn()::text")
        statement = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        if not becomes_true(lambda: self._database.value(statement, (position,)), CATCH_UP_SECONDS):
            raise TimeoutError(f"the replica did not catch up within {CATCH_UP_SECONDS} s")

    def _create(self) -> None:
        for directory in (self._directory, self.data, self._sockets):
            directories.make_private(directory, binaries.account())
        binaries.allow_traversal(self.data)
        options = ("--wal-method", "stream", "--checkpoint", "fast", "--write-recovery-conf", "--create-slot", "--slot")
        server = ("--pgdata", str(self.data), "--host", str(self._primary), "--username", USER)
        binaries.run("pg_basebackup", *server, *options, SLOT)


LOOKUP = "payloadiovs/?gtName={}&majorIOV=9000000&minorIOV=0"
WITHIN_SECONDS = 30
TELLING = {"log_statement": "all"}


class Pair:
    """A service and its replica, with a frozen tag, an unlocked one, and clients for both."""

    def __init__(self, service, standby):
        self.service, self.standby = service, standby
        self.client = JobClient(service.port)

    def insert(self, number):
        row = {"global_tag": "fresh", "payload_type": "Fresh", "payload_url": str(number), "checksum": "c"}
        status, answer = self.client.call("POST", "payload-iovs/insert", row | {"since": [number, 0], "until": "open"})
        assert status == 200, answer

    def newest(self):
        """The number of the row that was inserted last."""
        return int(self.client.get(LOOKUP.format("fresh"))[0][1])

    def lines(self, beginning):
        return [line for line in self.service.lines if beginning in line]

    def is_in(self):
        """Whether the last that was said about the replica is that it is in rotation."""
        said = self.lines("rotation")
        return bool(said) and "is in rotation" in said[-1]

    def wait_until_in(self, expected=True):
        # Asking is what makes a process look after its replicas.
        deadline = time.monotonic() + WITHIN_SECONDS
        while self.is_in() != expected:
            assert time.monotonic() < deadline, self.service.lines
            self.client.get(LOOKUP.format("tiny"))
            time.sleep(0.1)


class Statements:
    """Counts what two servers log of the statements that they are sent."""

    def __init__(self, pair):
        self._files = (pair.service.data / "postgres" / "server.log", pair.standby.log)
        self._sizes = [file.stat().st_size for file in self._files]

    def count(self, words):
        """How many statements with these words each was sent since the making: the primary and the replica."""
        found = []
        for file, size in zip(self._files, self._sizes, strict=True):
            with file.open("rb") as log:
                log.seek(size)
                found.append(sum(words.encode() in line for line in log))
        return tuple(found)


def tell(url):
    """Let a server that runs log its statements."""
    with contextlib.closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for name, value in TELLING.items():
            cursor.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        cursor.execute("SELECT pg_reload_conf()")
