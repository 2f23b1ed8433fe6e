"""A directory with the backups of one server: list them, find the chain of an incremental backup, delete old ones.

A backup directory contains:

- ``base/TIME/``: base backups, made with pg_basebackup. TIME is the UTC time at which the backup was complete and
  verified, such as 20261123T101500.123456Z. A backup with the suffix ``-incremental`` contains only what changed since
  the backup before it. Directories with other names, such as the prefix ``unfinished-``, are not complete backups.
- ``wal/``: the WAL (write-ahead log) since the oldest backup, compressed. The server adds a file at least every minute,
  unless nothing has changed.
- ``backup.lock``: the file that a backup in progress locks.

Functions and methods raise `ConfigurationError`, with a message of one line, if a backup is missing or damaged, or if a
program of PostgreSQL fails. Errors of the file system (`OSError`) are translated only in `create`, `read_manifest`
and `newest_before`.
"""

import gzip
import json
import re
import shutil
import zlib
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from cdb.embedded import postgres_binaries
from cdb.env import ConfigurationError
from cdb.processes import directories

TIME_FORMAT = "%Y%m%dT%H%M%S.%fZ"
INCREMENTAL = "-incremental"
UNFINISHED = "unfinished-"
NAME = re.compile(rf"\d{{8}}T\d{{6}}\.\d{{6}}Z({INCREMENTAL})?")
SEGMENT = re.compile(r"[0-9A-F]{24}")


class Backup:
    """One base backup, in the directory `path`. `finished` is the UTC time at which it was complete and verified."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_incremental = path.name.endswith(INCREMENTAL)
        self.finished = datetime.strptime(path.name.removesuffix(INCREMENTAL), TIME_FORMAT).replace(tzinfo=UTC)

    def end(self) -> tuple[int, int]:
        """The timeline and the position (LSN) in the WAL at which the backup was complete."""
        last = read_manifest(self.path)["WAL-Ranges"][-1]
        return last["Timeline"], parse_position(last["End-LSN"])

    @property
    def first_segment(self) -> str:
        """The name of the WAL file with which recovery begins. Raises `ValueError` if `backup_label` is damaged."""
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
        """Create `base/` and `wal/`, for the account that runs the server, if they do not exist.

        If this process is root, also permit all accounts to traverse the directories above them. Raises
        `ConfigurationError` if they can't be created, or if existing ones belong to another account or permit access to
        others.
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
        return [Backup(path) for path in paths if NAME.fullmatch(path.name)]

    def chain(self, backup: Backup) -> list[Backup]:
        """The backups that make up `backup`, in order: a full one, then the incremental ones up to `backup`.

        The full one is the newest that is not later than `backup`. Raises `ConfigurationError` if there is none.
        pg_combinebackup checks that none in between is missing.
        """
        earlier = [one for one in self.backups() if one.finished <= backup.finished]
        full = [number for number, one in enumerate(earlier) if not one.is_incremental]
        if not full:
            raise damaged(backup.path, "the full backup on which it is based is missing")
        return earlier[full[-1] :]

    def newest(self) -> Backup:
        """The newest backup. Raises `ConfigurationError` if there is none."""
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
        try:
            lines = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
            return {int(fields[0]): parse_position(fields[1]) for fields in lines if len(fields) > 1}
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise ConfigurationError(f"the history of timeline {timeline} can't be read: {path} ({error})") from error

    def segments(self) -> list[str]:
        """The names of the archived WAL files, without the suffix ``.gz``, sorted by timeline, then by position."""
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


def read_manifest(backup: Path) -> dict[str, Any]:
    """The manifest that pg_basebackup wrote into the directory `backup`.

    Raises `ConfigurationError` if it is missing or damaged.
    """
    try:
        text = (backup / "backup_manifest").read_bytes()
        manifest: dict[str, Any] = json.loads(text)
        # The checksum of the manifest itself, in its last line, covers all other lines.
        if sha256(text[: text.rindex(b'"Manifest-Checksum"')]).hexdigest() != manifest["Manifest-Checksum"]:
            raise damaged(backup, "the manifest differs from its checksum")
    except (OSError, ValueError, KeyError) as error:
        raise damaged(backup, f"its manifest can't be read ({error})") from error
    return manifest


def parse_position(text: str) -> int:
    """The position in the WAL, as a number of bytes, from PostgreSQL's notation (LSN), such as 0/5000118."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def damaged(backup: Path, reason: str) -> ConfigurationError:
    """The error for a backup that can't be used."""
    return ConfigurationError(f"the backup {backup} is damaged: {reason}")
