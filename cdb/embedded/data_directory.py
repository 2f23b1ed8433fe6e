"""The data directory of the embedded PostgreSQL: its paths, its initialisation, and the server's settings."""

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

# Relative to the data, the working directory of the server: a link to the directory for archived WAL. Without the link,
# the WAL is not archived. If the target of the link is missing, archiving fails, and the server keeps the WAL until it
# succeeds.
ARCHIVE = "../archive"
# Prefixes of directories beside the data: for data that a restoration is making, and for data that one has replaced.
RESTORED, REPLACED = "restored-", "replaced-"
# A file that exists is compared, because the server may archive a file again after a crash, and because two servers
# must never archive to the same directory.
ARCHIVE_COMMAND = (
    f"test ! -L {ARCHIVE} || if test -e {ARCHIVE}/%f.gz; then gzip -dc {ARCHIVE}/%f.gz | cmp -s - %p; "
    f"else gzip -1 -n < %p > {ARCHIVE}/%f.part && sync {ARCHIVE}/%f.part && mv {ARCHIVE}/%f.part {ARCHIVE}/%f.gz "
    f"&& sync {ARCHIVE}; fi"
)

OPTIONS = {
    "listen_addresses": "",
    "port": postgres_binaries.PORT,
    "unix_socket_permissions": "0700",
    # Enough for several instances of the service, with commands and tests at the same time.
    "max_connections": "200",
    # 2 GB suffice for the lookup's index of about ten million IOVs. Memory is only allocated as data are read into it.
    "shared_buffers": share(memory_megabytes(), 8, 128, 2048),
    # The plan of a lookup consists of a few hundred index scans: compiling it takes longer than running it.
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Time, process id, and application name: an instance of the service, or a command.
    "log_line_prefix": "%m [%p] %q%a ",
    # New rows slow an index-only scan down until they are vacuumed; the default is one minute.
    "autovacuum_naptime": "10s",
    # archive_mode can't be changed while the server runs, so it is always on.
    "archive_mode": "on",
    "archive_command": ARCHIVE_COMMAND,
    # At most the changes of the last minute are not archived.
    "archive_timeout": "60s",
}


def server_options(directory: Path) -> dict[str, str]:
    """The server's default settings, by name, for data in this directory."""
    # More WAL than the default, so that seeding does not cause frequent checkpoints.
    return OPTIONS | {"max_wal_size": share(disk_megabytes(directory), 20, 256, 4096)}


class DataDirectory:
    """The directory of an embedded server: its data, its locks and its log, and its socket if the path is suitable.

    `data`, inside `directory`, is PostgreSQL's own data directory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"

    @property
    def archive(self) -> Path:
        """The link to the directory for archived WAL. It does not exist before the first backup."""
        return self.data / ARCHIVE

    @property
    def sockets(self) -> Path:
        """The directory of the socket: beside the data, or under the temporary directory if that path is not suitable.

        It is not suitable if it is too long or contains a comma, which separates hosts in libpq.
        """
        return directories.for_sockets(self.directory / "socket", ",")

    def url_of(self, database: str) -> str:
        """The libpq URL of a database of this server."""
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets))}&port={postgres_binaries.PORT}"

    def create(self) -> None:
        """Create `directory` and the directory of the socket, for the account that runs the server, unless they exist.

        If this process is root, also permit all accounts to traverse the directories above `directory` and above
        PostgreSQL's programs. Raises `ConfigurationError` if the account can't be created, or if the directory of the
        socket belongs to another account or permits access to others; otherwise `OSError`.
        """
        account = postgres_binaries.account()
        self.directory.mkdir(parents=True, exist_ok=True)
        if account:
            os.chown(self.directory, account.pw_uid, account.pw_gid, follow_symlinks=False)
            postgres_binaries.allow_traversal(self.directory)
            postgres_binaries.allow_traversal(postgres_binaries.BINARIES)
        directories.make_private(self.sockets, account)

    def initialise(self) -> None:
        """Initialise the data with initdb, unless they exist.

        The data get their final name last, so a start that is killed leaves no incomplete data. The caller must hold
        the control lock (`locks.control`). Raises `ConfigurationError` if existing data belong to another version of
        PostgreSQL, if a restoration was interrupted while it replaced the data, or if initdb fails.
        """
        version_file = self.data / "PG_VERSION"
        if version_file.exists():
            found = version_file.read_text().strip()
            if found != str(postgres_binaries.MAJOR_VERSION):
                raise ConfigurationError(
                    f"{self.data} was created by PostgreSQL {found}, this is {postgres_binaries.MAJOR_VERSION}: "
                    "dump and restore, or use another CDB_DATA_DIR"
                )
            return
        for replaced in self.directory.glob(f"{REPLACED}*"):
            raise ConfigurationError(
                f"{self.data} does not exist, because a restoration was interrupted: rename {replaced} to it, and restore again"
            )
        # A unique name, because the initdb of a killed start may still run, and it removes its directory when it fails.
        unfinished = self.directory / f"unfinished-{uuid.uuid4().hex}"
        # Collation by byte order, which is the same with every C library.
        postgres_binaries.run(
            "initdb",
            f"--username={USER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            f"--pgdata={unfinished}",
        )
        unfinished.rename(self.data)
        for leftover in self.directory.glob("unfinished-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def create_database(self) -> None:
        """Create the service's database on the running server, unless it exists. Raises `psycopg2.Error` on failure."""
        with contextlib.closing(psycopg2.connect(self.url_of("postgres"))) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")
