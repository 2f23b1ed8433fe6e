"""Backups of the embedded PostgreSQL: base backups, and continuously archived WAL.

A backup directory contains:

- ``base/TIME/``: base backups, made with pg_basebackup. TIME is the UTC time at which the backup was complete, such as
  20261123T101500.123456Z. With the suffix ``-incremental``, it contains only what changed since the backup before it.
- ``wal/``: the WAL (write-ahead log) since the first backup, compressed. The server adds a file at least every minute,
  unless nothing has changed.

Functions and methods raise `ConfigurationError`, with a message of one line, if a backup is missing, damaged or
unsuitable, or if a program of PostgreSQL fails. Errors of the file system (`OSError`), and in `back_up` those of the
connection (`psycopg2.Error`), are not translated.
"""

import contextlib
import fcntl
import gzip
import json
import re
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
from cdb.embedded.data_directory import USER, DataDirectory
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ConfigurationError
from cdb.processes import directories

TIME_FORMAT = "%Y%m%dT%H%M%S.%fZ"
INCREMENTAL = "-incremental"
UNFINISHED = "unfinished-"
SEGMENT = re.compile(r"[0-9A-F]{24}")
# The WAL has to reach the archive within this time. Normally it takes less than a second.
ARCHIVE_TIMEOUT_SECONDS = 60
BLOCK_BYTES = 2**20


class Backup:
    """One base backup. `finished` is the time at which it was complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_incremental = path.name.endswith(INCREMENTAL)
        self.finished = datetime.strptime(path.name.removesuffix(INCREMENTAL), TIME_FORMAT).replace(tzinfo=UTC)

    def end(self) -> tuple[int, int]:
        """The timeline and the position (LSN) in the WAL at which the backup was complete."""
        last = _read_manifest(self.path)["WAL-Ranges"][-1]
        return last["Timeline"], _position(last["End-LSN"])

    @property
    def first_segment(self) -> str:
        """The name of the WAL file with which recovery begins."""
        label = (self.path / "backup_label").read_text()
        [name] = re.findall(r"^START WAL LOCATION: .*\(file ([0-9A-F]{24})\)", label, re.MULTILINE)
        return str(name)


class BackupDirectory:
    """A directory for the backups of one server."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.base = self.path / "base"
        self.wal = self.path / "wal"

    def create(self) -> None:
        """Create the directories, for the account that runs the server, if they do not exist.

        If this process is root, also permit all accounts to traverse the directories above them.
        """
        account = postgres_binaries.account()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for directory in (self.base, self.wal):
                directories.make_private(directory, account)
        except OSError as error:
            raise ConfigurationError(f"can't back up to {self.path}: {error.strerror}") from error
        if account:
            postgres_binaries.allow_traversal(self.base)

    def backups(self) -> list[Backup]:
        """All complete backups, the oldest first."""
        paths = sorted(self.base.iterdir()) if self.base.is_dir() else []
        return [Backup(path) for path in paths if not path.name.startswith(UNFINISHED)]

    def chain(self, backup: Backup) -> list[Backup]:
        """The backups that make up this one: a full one, and the incremental ones from there up to this one."""
        earlier = [one for one in self.backups() if one.finished <= backup.finished]
        first = max(number for number, one in enumerate(earlier) if not one.is_incremental)
        return earlier[first:]

    def newest(self) -> Backup:
        """The newest backup."""
        backups = self.backups()
        if not backups:
            raise ConfigurationError(f"there is no backup in {self.path}")
        return backups[-1]

    def newest_before(self, until: datetime | None, timeline: int | None) -> Backup:
        """The newest backup from which the state at the time `until` can be restored (None: the last state).

        `until` has a time zone. The backup is on the timeline with the number `timeline` (None: the latest one), or on
        an ancestor of it, and was complete before the timelines branched. Raises `ConfigurationError` if there is none.
        """
        wanted = timeline or max([self.newest().end()[0], *self._timelines()])
        parted = self._ancestors(wanted)
        backups = self.backups()
        for one in reversed(backups):
            if until is None or one.finished <= until:
                on, position = one.end()
                if on == wanted or position <= parted.get(on, -1):
                    return one
        if until is not None and until < backups[0].finished:
            raise ConfigurationError(
                f"the first backup in {self.path} was complete at {backups[0].finished:%Y-%m-%dT%H:%M:%SZ}; "
                "an earlier state can't be restored"
            )
        raise ConfigurationError(f"there is no suitable backup in {self.path} for timeline {wanted}")

    def _timelines(self) -> list[int]:
        return [int(path.name[:8], 16) for path in self.wal.glob("????????.history.gz")]

    def _ancestors(self, timeline: int) -> dict[int, int]:
        """The ancestors of a timeline, each with the position in the WAL up to which it belongs to the timeline."""
        path = self.wal / f"{timeline:08X}.history.gz"
        if not path.exists():
            return {}
        lines = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        return {int(fields[0]): _position(fields[1]) for fields in lines if len(fields) > 1}

    def segments(self) -> list[str]:
        """The names of the archived WAL files, without the suffix ``.gz``, in ascending order."""
        names = [path.name.removesuffix(".gz") for path in self.wal.glob("*.gz")] if self.wal.is_dir() else []
        return sorted(name for name in names if SEGMENT.fullmatch(name))

    def prune(self, keep: int) -> int:
        """Delete all but the `keep` newest full backups with their incremental ones, and the WAL from before them.

        `keep` is at least 1. Returns the number of deleted backups, full and incremental.
        """
        backups = self.backups()
        full = [number for number, one in enumerate(backups) if not one.is_incremental]
        if len(full) <= keep:
            return 0
        oldest = full[-keep]
        for one in backups[:oldest]:
            shutil.rmtree(one.path)
        postgres_binaries.run("pg_archivecleanup", "-b", "-x", ".gz", str(self.wal), backups[oldest].first_segment)
        return oldest


def back_up(server: EmbeddedPostgres, directory: BackupDirectory, *, incremental: bool = False) -> Backup:
    """Let the running server archive its WAL to `directory`, then make a base backup and verify it.

    Returns when the WAL up to the end of the backup is archived. The server continues to archive, even if the backup
    fails. An incremental backup contains what changed since the newest one in `directory`, which must exist.

    Raises `ConfigurationError` also if another backup to `directory` is in progress, if it has backups of another
    server, or if the WAL is already archived elsewhere. If it raises because the WAL is not archived within
    `ARCHIVE_TIMEOUT_SECONDS`, the backup remains.
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
        if previous and _read_manifest(previous.path)["System-Identifier"] != identifier:
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

    Of an incremental backup, those on which it is based are not verified. This is what pg_verifybackup does. It is
    not used, because that program in the PostgreSQL wheel ends with a segmentation fault.
    """
    manifest = _read_manifest(backup)
    files = {file["Path"]: file for file in manifest["Files"]}
    present = {str(file.relative_to(backup)) for file in backup.rglob("*") if file.is_file()}
    # The manifest does not contain itself and the WAL.
    present = {name for name in present if not name.startswith("pg_wal/")} - {"backup_manifest"}
    for name in sorted(files.keys() ^ present):
        raise _damaged(backup, f"{name} {'is missing' if name in files else 'does not belong to it'}")
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
                raise _damaged(backup, f"{name} differs from its checksum")
    for part in manifest["WAL-Ranges"]:
        limits = [f"--timeline={part['Timeline']}", f"--start={part['Start-LSN']}", f"--end={part['End-LSN']}"]
        postgres_binaries.run("pg_waldump", "--quiet", f"--path={backup / 'pg_wal'}", *limits)


def _read_manifest(backup: Path) -> dict[str, Any]:
    try:
        text = (backup / "backup_manifest").read_bytes()
        manifest: dict[str, Any] = json.loads(text)
        # The checksum of the manifest itself, in its last line, covers all other lines.
        if sha256(text[: text.rindex(b'"Manifest-Checksum"')]).hexdigest() != manifest["Manifest-Checksum"]:
            raise _damaged(backup, "the manifest differs from its checksum")
    except (OSError, ValueError, KeyError) as error:
        raise _damaged(backup, f"its manifest can't be read ({error})") from error
    return manifest


def _position(text: str) -> int:
    """A position in the WAL from PostgreSQL's notation, such as 0/5000118."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _damaged(backup: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(f"the backup {backup} is damaged: {reason}")


def _base_backup(server: EmbeddedPostgres, directory: BackupDirectory, previous: Backup | None) -> Backup:
    """Make and verify a backup, incremental if there is a `previous` one. It gets its name last."""
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
    """Let the server archive its WAL to the backup directory. The archive command finds the link."""
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
