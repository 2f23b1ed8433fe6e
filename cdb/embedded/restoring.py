"""Restoring the data of the embedded PostgreSQL from a backup directory, up to a point in time."""

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg2
from tqdm import tqdm

from cdb.embedded import postgres_binaries
from cdb.embedded.backup_directory import TIME_FORMAT, Backup, BackupDirectory
from cdb.embedded.backups import verify
from cdb.embedded.data_directory import REPLACED, RESTORED
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ConfigurationError

# Recovery replays all WAL since the backup, which may be weeks old.
RECOVERY_TIMEOUT_SECONDS = 7 * 24 * 3600
# A WAL file has 16 MiB, and 256 of them have the same second part of their names.
SEGMENTS_PER_PART = 256
# Relative to the data: a link to the archived WAL, so that its path needs no quoting. WAL that is not in the archive is
# taken from the data that are replaced. Exit codes above 125 stop the server: a damaged file is not the end of the WAL.
ARCHIVE = "../restore-from"
RESTORE_COMMAND = (
    f"if test -e {ARCHIVE}/%f.gz; then gzip -dc {ARCHIVE}/%f.gz > %p || exit 255; "
    "else test -e ../data/pg_wal/%f && cp ../data/pg_wal/%f %p; fi"
)

State = TypeVar("State")


@dataclass(frozen=True)
class Restored:
    """A restored database: the backup that was used, and the directory of the replaced data (None: there were none)."""

    backup: Backup
    replaced: Path | None


def restore(
    server: EmbeddedPostgres,
    directory: BackupDirectory,
    *,
    until: datetime | None,
    timeline: int | None,
    read: Callable[[], State],
    finish: Callable[[State | None], None],
) -> Restored:
    """Replace the server's data by their state at the time `until`, which has a time zone.

    None for `until` is the last state that the archive and the WAL of the present data contain. `timeline` is the
    number of PostgreSQL's timeline to follow; None is the latest one in the archive. No process may use the server.

    `read` is called while a server runs on the present data. `finish` is called with the result of `read` while a
    server runs on the restored data. Both reach that server at `server.url`. `finish` gets None if there are no present
    data, if no server starts on them, or if `read` raises `ConfigurationError`.

    If anything fails, also `finish`, the present data remain. Raises `ConfigurationError`, with a message of one line.
    `OSError`, `psycopg2.Error` and the exceptions of `read` and `finish` are not translated.
    """
    with server.unused(), contextlib.ExitStack() as cleanup:
        state = _read_present(server, read)
        backup = directory.newest_before(until, timeline)
        chain = directory.chain(backup)
        for one in chain:
            verify(one.path)
        missing = _missing_segment(backup, directory, server.data / "pg_wal")
        if missing and until is None:
            raise ConfigurationError(
                f"the WAL file {missing} is not in {directory.wal}: only an earlier state can be restored, with --until"
            )
        restored = server.directory / f"{RESTORED}{uuid.uuid4().hex}"
        cleanup.callback(shutil.rmtree, restored, ignore_errors=True)
        postgres_binaries.run("pg_combinebackup", *(str(one.path) for one in chain), f"--output={restored}")
        _recover(server, restored, directory, backup, until, timeline, lambda: finish(state))
        replaced = None
        if server.data.exists():
            replaced = server.data.rename(server.directory / f"{REPLACED}{datetime.now(UTC):{TIME_FORMAT}}")
        restored.rename(server.data)
    return Restored(backup, replaced)


def _read_present(server: EmbeddedPostgres, read: Callable[[], State]) -> State | None:
    """The result of `read` for the present data. The server also archives the last WAL when it stops.

    None if there are no data, if no server starts on them, or if `read` raises `ConfigurationError`.
    """
    if not (server.data / "PG_VERSION").exists():
        return None
    process = server.process(server.data, {})
    try:
        process.start(ends_with_parent=True)
        return read()
    except ConfigurationError:
        return None
    finally:
        process.stop()


def _recover(
    server: EmbeddedPostgres,
    data: Path,
    directory: BackupDirectory,
    backup: Backup,
    until: datetime | None,
    timeline: int | None,
    finish: Callable[[], None],
) -> None:
    """Replay the WAL in a server on the restored data, and call `finish` before it stops."""
    link = _request_recovery(data, directory)
    process = server.process(data, _recovery_options(until, timeline))
    segments = [name for name in directory.segments() if name[8:] > backup.first_segment[8:]]
    try:
        with tqdm(total=len(segments), unit="WAL file", desc="recovering", disable=None, leave=False) as bar:
            process.start(
                ends_with_parent=True,
                on_wait=lambda pid: _show(bar, pid, segments),
                timeout=RECOVERY_TIMEOUT_SECONDS,
            )
        with contextlib.closing(psycopg2.connect(server.data_directory.url_of("postgres"))) as connection:
            connection.autocommit = True
            connection.cursor().execute("ALTER SYSTEM RESET summarize_wal")
        finish()
    except ConfigurationError as error:
        if "before configured recovery target was reached" not in str(error):
            raise
        raise ConfigurationError(
            f"the archived WAL has no change after {until}; without --until, the last state is restored"
        ) from error
    finally:
        process.stop()
        link.unlink()


def _request_recovery(data: Path, directory: BackupDirectory) -> Path:
    """Let the next server on the data recover them, with WAL from `directory`.

    Returns the link to the WAL, which the caller must remove after the recovery.
    """
    signal_file = data / "recovery.signal"
    signal_file.touch()
    if account := postgres_binaries.account():
        os.chown(signal_file, account.pw_uid, account.pw_gid)
    link = data / ARCHIVE
    link.unlink(missing_ok=True)
    link.symlink_to(directory.wal)
    return link


def _recovery_options(until: datetime | None, timeline: int | None) -> dict[str, str]:
    """The server's settings for the recovery."""
    options = {
        "restore_command": RESTORE_COMMAND,
        "recovery_target_timeline": str(timeline or "latest"),
        "recovery_target_action": "promote",
        # The WAL of the new timeline is archived when the restored data are in use. If the restoration fails, the archive
        # must not have a timeline that later restorations would follow.
        "archive_command": "",
        # Connections are accepted only after the recovery.
        "hot_standby": "off",
        # It would look for WAL from before the restoration. The next backup turns it on.
        "summarize_wal": "off",
    }
    if until is not None:
        options["recovery_target_time"] = until.isoformat()
    return options


def _show(bar: "tqdm[Any]", pid: int, segments: list[str]) -> None:
    """Advance the progress bar to the WAL file that the server replays, as the title of its startup process says."""
    with contextlib.suppress(psutil.Error):
        titles = " ".join(part for child in psutil.Process(pid).children() for part in child.cmdline())
        for name in re.findall(r"recovering ([0-9A-F]{24})", titles):
            bar.update(sum(segment[8:] < name[8:] for segment in segments) - bar.n)


def _missing_segment(backup: Backup, directory: BackupDirectory, present: Path) -> str | None:
    """The first WAL file between the backup and the newest archived one that is missing, or None.

    It is missing if neither the archive nor the backup nor `present`, the WAL of the present data, contains it.
    """
    archived = {_number(name) for name in directory.segments()}
    available = archived | _numbers(backup.path / "pg_wal") | _numbers(present)
    for number in range(_number(backup.first_segment), max(archived, default=0)):
        if number not in available:
            part, rest = divmod(number, SEGMENTS_PER_PART)
            return f"{backup.first_segment[:8]}{part:08X}{rest:08X}"
    return None


def _numbers(wal: Path) -> set[int]:
    names = [path.name for path in wal.iterdir()] if wal.is_dir() else []
    return {_number(name) for name in names if re.fullmatch(r"[0-9A-F]{24}", name)}


def _number(segment: str) -> int:
    """The position of a WAL file in the sequence of its timeline."""
    return int(segment[8:16], 16) * SEGMENTS_PER_PART + int(segment[16:], 16)
