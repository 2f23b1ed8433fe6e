"""The data directory of the embedded PostgreSQL server: its paths, the server's settings, and how it is initialised."""

import contextlib
import os
import shutil
import uuid
from pathlib import Path
from urllib.parse import quote

import psycopg2

from cdb.embedded import postgres_binaries
from cdb.env import ConfigurationError
from cdb.processes import directories
from cdb.processes.machine import disk_megabytes, memory_megabytes, share

DATABASE = USER = "cdb"

OPTIONS = {
    "listen_addresses": "",
    "port": postgres_binaries.PORT,
    "unix_socket_permissions": "0700",
    # Enough for several instances of the service, and for commands and tests at the same time.
    "max_connections": "200",
    # 2 GB hold the lookup's index of some ten million IOVs. The server touches as much of it as it has data for.
    "shared_buffers": share(memory_megabytes(), 8, 128, 2048),
    # The lookup's plan is a few hundred index probes: compiling it costs more than running it.
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Time, process, and the name of the client's program: an instance of the service, or a command.
    "log_line_prefix": "%m [%p] %q%a ",
    # Fresh rows slow an index-only scan down until they are vacuumed, so look for them more often than every minute.
    "autovacuum_naptime": "10s",
}


def options_of(directory: Path) -> dict[str, str]:
    """The server's settings, by name, for data in this directory."""
    # More WAL than the default, so that seeding does not checkpoint all the time.
    return OPTIONS | {"max_wal_size": share(disk_megabytes(directory), 20, 256, 4096)}


class DataDirectory:
    """A directory with the server's data in it, and beside them, if the path allows it, its socket."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"

    @property
    def sockets(self) -> Path:
        """The directory of the socket: beside the data, or under the temporary directory where that path can't serve.

        It can't if it is too long, or has a comma, at which clients split a list of hosts.
        """
        return directories.for_sockets(self.directory / "socket", ",")

    def url_of(self, database: str) -> str:
        """The libpq URL of a database of this server."""
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets))}&port={postgres_binaries.PORT}"

    def make(self) -> None:
        """Make the directories, for the account that runs the server."""
        account = postgres_binaries.account()
        self.directory.mkdir(parents=True, exist_ok=True)
        if account:
            os.chown(self.directory, account.pw_uid, account.pw_gid, follow_symlinks=False)
            postgres_binaries.let_pass(self.directory)
            postgres_binaries.let_pass(postgres_binaries.BINARIES)
        directories.make_private(self.sockets, account)

    def initialise(self) -> None:
        """Initialise the data, unless they are there. They get their name last, so a killed start leaves no incomplete data.

        Raises `ConfigurationError` if another version of PostgreSQL made them.
        """
        version_file = self.data / "PG_VERSION"
        if version_file.exists():
            found = version_file.read_text().strip()
            if found != str(postgres_binaries.MAJOR_VERSION):
                raise ConfigurationError(
                    f"{self.data} was made by PostgreSQL {found}, this is {postgres_binaries.MAJOR_VERSION}: "
                    "dump and restore, or use another CDB_DATA_DIR"
                )
            return
        # A name of its own, because the initdb of a killed start may still be busy, and removes what it did not finish.
        unfinished = self.directory / f"unfinished-{uuid.uuid4().hex}"
        # Byte order as collation: the same on every machine, whatever its C library.
        postgres_binaries.run(
            "initdb", "--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale-provider", "builtin",
            "--builtin-locale", "C.UTF-8", "--locale", "C", "--pgdata", str(unfinished),
        )  # fmt: skip
        unfinished.rename(self.data)
        for leftover in self.directory.glob("unfinished-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def create_database(self) -> None:
        """Create the service's database on the running server, unless it is there."""
        with contextlib.closing(psycopg2.connect(self.url_of("postgres"))) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")
