"""Backups of the embedded PostgreSQL: base backups, and continuously archived WAL.

Functions raise `ConfigurationError`, with a message of one line, if a backup is missing, damaged or unsuitable, or if a
program of PostgreSQL fails. Errors of the file system (`OSError`), and in `back_up` those of the connection
(`psycopg2.Error`), are not translated.
"""

import contextlib
import fcntl
import shutil
import time
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg2
from tqdm import tqdm

from cdb.embedded import locks, postgres_binaries
from cdb.embedded.backup_directory import (
    INCREMENTAL,
    TIME_FORMAT,
    UNFINISHED,
    Backup,
    BackupDirectory,
    damaged,
    read_manifest,
)
from cdb.embedded.data_directory import USER, DataDirectory
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ConfigurationError

# The WAL has to reach the archive within this time. Normally it takes less than a second.
ARCHIVE_TIMEOUT_SECONDS = 60
BLOCK_BYTES = 2**20


def back_up(server: EmbeddedPostgres, directory: BackupDirectory, *, incremental: bool = False) -> Backup:
    """Let the running server archive its WAL to `directory`, then make a base backup and verify it.

    Returns when the WAL up to the end of the backup is archived. The server continues to archive, even if the backup
    fails. An incremental backup contains what changed since the newest one in `directory`, which must exist.

    Raises `ConfigurationError` also if another backup to `directory` is in progress, if `directory` has backups of
    another server, if the server already archives its WAL elsewhere, or if an earlier version of cdb started the server
    with `archive_mode` off. If the WAL is not archived within `ARCHIVE_TIMEOUT_SECONDS`, the error is raised, but the
    backup remains.
    """
    directory.create()
    with (
        locks.opened(directory.path / "backup.lock") as lock,
        contextlib.closing(psycopg2.connect(server.data_directory.url_of("postgres"))) as connection,
    ):
        if not locks.try_lock(lock, fcntl.LOCK_EX):
            raise ConfigurationError(f"another backup to {directory.path} is in progress")
        connection.autocommit = True
        cursor = connection.cursor()
        if _value(cursor, "SHOW archive_mode") != "on":
            raise ConfigurationError(
                "the running server was started by an earlier version of cdb; restart the service first"
            )
        previous = directory.newest() if directory.backups() or incremental else None
        identifier = _value(cursor, "SELECT system_identifier FROM pg_control_system()")
        if previous and read_manifest(previous.path)["System-Identifier"] != identifier:
            raise ConfigurationError(f"{directory.path} has backups of another server; choose another directory")
        _archive_to(server.data_directory, directory)
        # For incremental backups from now on.
        cursor.execute("ALTER SYSTEM SET summarize_wal = on")
        cursor.execute("SELECT pg_reload_conf()")
        made = _base_backup(server, directory, previous if incremental else None)
        _wait_for_archive(cursor, server)
    return made


def verify(backup: Path) -> None:
    """Compare the files of a backup with its manifest, and read its WAL. Raises `ConfigurationError` if it is damaged.

    The backups on which an incremental backup is based are not verified. This function replaces pg_verifybackup,
    because that program in the PostgreSQL wheel ends with a segmentation fault.
    """
    manifest = read_manifest(backup)
    files = {file["Path"]: file for file in manifest["Files"]}
    present = {str(file.relative_to(backup)) for file in backup.rglob("*") if file.is_file()}
    # The manifest does not contain itself and the WAL.
    present = {name for name in present if not name.startswith("pg_wal/")} - {"backup_manifest"}
    for name in sorted(files.keys() ^ present):
        raise damaged(backup, f"{name} {'is missing' if name in files else 'does not belong to it'}")
    with tqdm(
        total=sum(file["Size"] for file in files.values()),
        unit="B",
        unit_scale=True,
        desc="verifying",
        disable=None,
        leave=False,
    ) as bar:
        for name, file in files.items():
            digest = sha256()
            with (backup / name).open("rb") as opened:
                while block := opened.read(BLOCK_BYTES):
                    digest.update(block)
                    bar.update(len(block))
            if digest.hexdigest() != file["Checksum"]:
                raise damaged(backup, f"{name} differs from its checksum")
    for part in manifest["WAL-Ranges"]:
        limits = [f"--timeline={part['Timeline']}", f"--start={part['Start-LSN']}", f"--end={part['End-LSN']}"]
        postgres_binaries.run("pg_waldump", "--quiet", f"--path={backup / 'pg_wal'}", *limits)


def _base_backup(server: EmbeddedPostgres, directory: BackupDirectory, previous: Backup | None) -> Backup:
    """Make and verify a backup, incremental if there is a `previous` one.

    Its directory gets the final name last, so an interrupted backup does not count as complete.
    """
    for leftover in directory.base.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover)
    unfinished = directory.base / f"{UNFINISHED}{uuid.uuid4().hex}"
    postgres_binaries.run(
        "pg_basebackup",
        f"--host={server.socket_directory}",
        f"--port={postgres_binaries.PORT}",
        f"--username={USER}",
        "--no-password",
        f"--pgdata={unfinished}",
        "--checkpoint=fast",
        "--manifest-checksums=SHA256",
        "--progress",
        *([f"--incremental={previous.path / 'backup_manifest'}"] if previous else []),
        shows_progress=True,
    )
    verify(unfinished)
    name = f"{datetime.now(UTC):{TIME_FORMAT}}{INCREMENTAL if previous else ''}"
    return Backup(unfinished.rename(directory.base / name))


def _archive_to(data_directory: DataDirectory, directory: BackupDirectory) -> None:
    """Let the server archive its WAL to the backup directory: create the link to which `ARCHIVE_COMMAND` writes.

    Raises `ConfigurationError` if the link leads to another directory.
    """
    link = data_directory.archive
    if not link.is_symlink():
        link.symlink_to(directory.wal)
    elif link.readlink() != directory.wal:
        raise ConfigurationError(
            f"the WAL is already archived to {link.readlink()}; back up to {link.readlink().parent}, or remove the link {link}"
        )


def _wait_for_archive(cursor: Any, server: EmbeddedPostgres) -> None:
    """Wait until all WAL up to now is in the archive."""
    # Without a change since the last WAL file, the server would not complete another one.
    cursor.execute("SELECT pg_create_restore_point('backup')")
    segment = _value(cursor, "SELECT pg_walfile_name(pg_switch_wal())")
    deadline = time.monotonic() + ARCHIVE_TIMEOUT_SECONDS
    while (_value(cursor, "SELECT last_archived_wal FROM pg_stat_archiver") or "") < segment:
        if time.monotonic() > deadline:
            raise ConfigurationError(f"the backup is complete, but the WAL is not archived; see {server.log}")
        time.sleep(0.1)


def _value(cursor: Any, statement: str) -> Any:
    cursor.execute(statement)
    return cursor.fetchone()[0]
