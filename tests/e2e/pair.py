"""A primary and its standby without a service, which can change their roles as in a switchover or a failover."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdb.embedded.server import EmbeddedPostgres
from loadtests.harness import Database
from loadtests.service import becomes_true, kill
from loadtests.usage import processes_in
from tests.e2e.service import after_first_start, copy_data
from tests.e2e.standby import CONNECTIONS, Standby
from tests.postgres import FAST


class ServerPair:
    """The servers `first`, at first the primary, and `second`, its standby."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o711)
        copy_data(after_first_start({"SCENARIO": "tiny", "CDB_IOV_MODE": "continuous"}), directory / "data")
        self.first = EmbeddedPostgres(directory / "data" / "postgres", FAST | {"max_connections": CONNECTIONS})
        self.second = Standby(directory / "data", directory / "standby")
        self.sockets = [self.first.sockets, directory / "standby" / "socket"]

    @property
    def url(self) -> str:
        """The URL of both servers, of which libpq uses the primary."""
        hosts = ",".join(map(str, self.sockets))
        return f"postgresql://cdb@/cdb?host={hosts}&port=5432,5432&target_session_attrs=read-write"

    @contextlib.contextmanager
    def running(self) -> Iterator["ServerPair"]:
        """Both servers run inside the block."""
        self.first.acquire()
        try:
            with self.second.running():
                yield self
        finally:
            self.first.release()

    def kill_first(self) -> None:
        """Kill all processes of the first server at once, as a power failure does."""
        kill(processes_in(self.first.data))

    def value(self, statement: str) -> Any:
        """The result of a query to the server that accepts writes."""
        return Database(self.url).value(statement)

    def switch_over(self) -> None:
        """Shut the primary down, promote the standby, and start the former primary as its standby, as Patroni does."""
        self.first.stop()
        self.second.promote()
        with (self.first.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = 'host={self.sockets[1]} port=5432 user=cdb'\n")
        (self.first.data / "standby.signal").touch()
        self.first.start()

    def make_first_read_only(self) -> None:
        """Let the first server refuse writes from now on, while its sessions stay."""
        database = Database(self.first.url)
        for statement in ("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"):
            database.run(statement)
        # A session begun after the reload shows that the server has told all earlier sessions.
        assert becomes_true(lambda: database.value("SHOW default_transaction_read_only") == "on", 30)
