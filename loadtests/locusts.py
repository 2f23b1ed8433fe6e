"""Running locust without its web UI, as a child process, and reading its recording."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas

from cdb.env import ROOT
from loadtests import recording
from loadtests.service import ServiceError, Settings, free_port, last_line, started

# locust must end within this time after the end of the test and the timeout of its last requests.
END_SECONDS = 60
PATIENCE_SECONDS = 60
# The time in which users delete what they created, if locust is stopped early.
STOP_SECONDS = 15


def run(host: str, users: Mapping[str, int], options: Mapping[str, Any], directory: Path) -> pandas.DataFrame:
    """Put load on `host` and return the recording (`recording.read`), whose directory gets locust's output, too.

    `users` are user classes with weights. `options` are those of locust and of our locustfile by name, with True for flags;
    `users` is the number of all users. Raises `ServiceError` if locust fails, with the last line of its output, if it does
    not end in time, if one of its processes ends early, or if it sends no request.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log, processes = directory / "locust.log", int(options.get("processes", 1))
    with log.open("w") as output:
        environment = Settings(directory, {}).environment()
        with started(_command(host, users, options, directory), environment, output, STOP_SECONDS) as process:
            try:
                code = process.wait(_longest(options))
            except subprocess.TimeoutExpired as error:
                raise ServiceError(f"locust did not end within {error.timeout:.0f} s") from error
    if code:
        raise ServiceError(f"locust failed ({code}): {last_line(log.read_text())}")
    if (complete := len(list(directory.glob("complete-*")))) != processes:
        raise ServiceError(f"{processes - complete} of {processes} processes of locust ended early")
    try:
        return recording.read(directory)
    except ValueError as error:
        raise ServiceError(f"{error}; last line of locust's output: {last_line(log.read_text())}") from error


def _command(host: str, users: Mapping[str, int], options: Mapping[str, Any], directory: Path) -> list[str]:
    given = {"host": host, "spawn-rate": options["users"], "record": directory, **options}
    # Failed requests are in the recording; with this option any other code is a failure of locust itself.
    given["exit-code-on-error"] = 0
    if int(options.get("processes", 1)) > 1:
        # By default master and workers use a fixed port on all addresses, and concurrent runs would conflict.
        port = free_port()
        given |= {"master-bind-host": "127.0.0.1", "master-bind-port": port, "master-port": port}
    words = [sys.executable, "-m", "locust", "-f", str(ROOT / "loadtests" / "locustfile.py")]
    words += ["--headless", "--only-summary"]
    # One option with all values, because a repeated option would replace the first.
    weights = ({"user_class_name": name, "weight": weight} for name, weight in users.items())
    words += ["--config-users", *map(json.dumps, weights)]
    for name, value in given.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return [*words, *users]


def _longest(options: Mapping[str, Any]) -> float | None:
    """The seconds after which locust hangs; None if its users end by themselves."""
    seconds = options.get("run-time")
    return None if seconds is None else float(str(seconds).rstrip("s")) + PATIENCE_SECONDS + END_SECONDS
