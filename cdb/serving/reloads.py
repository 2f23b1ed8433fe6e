"""The communication between `manage.py reload` and the running `make serve`: a PID file, SIGHUP, and a log of reloads.

Reloads are numbered. The serving process logs the beginning and the end of each one. `manage.py reload` sends SIGHUP,
and waits until the log has the end of a reload that began after that.
"""

import os
import signal
import time
from pathlib import Path

from cdb.env import ConfigurationError
from cdb.serving import layout, templates

RECORD = "reloads.log"
BEGUN, ENDED, FAILED = "begun", "ended", "failed"
PAUSE_SECONDS = 0.1


class ReloadLog:
    """The log of reloads, as the serving process writes it.

    The constructor empties the log and creates the PID file. The handler of SIGHUP must already be installed.
    """

    def __init__(self) -> None:
        self._number = 0
        templates.write(_file(RECORD), "")
        templates.write(_file(layout.PID_FILE), f"{os.getpid()}\n")

    def begin(self) -> None:
        """Log that another reload has begun."""
        self._number += 1
        self._write(BEGUN)

    def end(self, failure: str = "") -> None:
        """Log that the reload has ended: the new processes respond or, with a `failure`, old ones continue.

        `failure` is one line: which processes continue, and why.
        """
        self._write(f"{FAILED} {failure}" if failure else ENDED)

    def close(self) -> None:
        """Remove the PID file, because the service has stopped."""
        _file(layout.PID_FILE).unlink(missing_ok=True)

    def _write(self, what: str) -> None:
        with _file(RECORD).open("a") as record:
            record.write(f"{self._number} {what}\n")


def reload(timeout_seconds: float) -> None:
    """Make the running `make serve` reload, and wait until its new processes respond.

    Raises `ConfigurationError` if none runs, if it is starting or stopping, if it runs as another user, if it ends
    meanwhile, if the reload fails and old processes continue, or if the reload has not ended after `timeout_seconds`.
    """
    process = _serving_process()
    latest = max((number for number, what in _read() if what == BEGUN), default=0)
    try:
        os.kill(process, signal.SIGHUP)
    except PermissionError as error:
        raise ConfigurationError(
            f"make serve runs as another user (process {process}); reload it as that user"
        ) from error
    except ProcessLookupError as error:
        raise ConfigurationError(f"make serve is starting or stopping; try again ({error})") from error
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        # Only a later reload counts: one that was in progress may have read the old code.
        for number, what in _read():
            if number > latest and what == ENDED:
                return
            if number > latest and what.startswith(FAILED):
                raise ConfigurationError(f"not reloaded, {what.removeprefix(FAILED).strip()}")
        if not layout.is_locked():
            raise ConfigurationError("make serve ended during the reload")
        time.sleep(PAUSE_SECONDS)
    raise ConfigurationError(
        f"the reload has not ended after {timeout_seconds:g} s (--timeout); see the output of make serve"
    )


def _serving_process() -> int:
    if not layout.is_locked():
        raise ConfigurationError(f"no make serve runs with {layout.directory()}; check CDB_DATA_DIR")
    try:
        return int(_file(layout.PID_FILE).read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"make serve is starting or stopping; try again ({error})") from error


def _read() -> list[tuple[int, str]]:
    lines = _file(RECORD).read_text().splitlines() if _file(RECORD).exists() else []
    parts = (line.partition(" ") for line in lines)
    return [(int(number), what) for number, _, what in parts]


def _file(name: str) -> Path:
    return layout.directory() / name
