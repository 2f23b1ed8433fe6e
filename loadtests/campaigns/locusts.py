"""Running locust without its web UI, as a child process, and reading its recording."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdb.env import ROOT
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.recording.reading import Recording
from loadtests.service import ServiceError, Settings, free_port, last_line, started

FILES = ("locustfile.py", "users/campaigns.py")
# locust must end within this time after the end of the test and the timeout of its last requests.
END_SECONDS = 60
PATIENCE_SECONDS = 60
# The time in which users delete what they created, if locust is stopped early.
STOP_SECONDS = 15


@dataclass(frozen=True)
class Load:
    """The command line of a locust run.

    `users` are user classes with weights, `count` is the number of all users, `seconds` the run time (None:
    until each user has done its `jobs-per-user`), `spawn_rate` the users started per second (None: all at
    once). `options` are those of our locustfile by name, with True for flags. Options that are not given have
    the defaults of the locustfile, except for the scenario of the global tag and its layout, which are those of
    `Harness.seed`. `processes` is that of locust.
    """

    users: Mapping[str, int]
    count: int
    seconds: float | None = None
    spawn_rate: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    processes: int = 1

    def settings(self) -> dict[str, str]:
        """The settings as text by name, for reports, without those that are None or empty."""
        users = ", ".join(name if len(self.users) == 1 else f"{weight} × {name}" for name, weight in self.users.items())
        words = {"users": f"{self.count:,} ({users})", "seconds": self.seconds}
        words |= {"users a second at the start": self.spawn_rate, "processes": self.processes}
        return {name: str(value) for name, value in (words | dict(self.options)).items() if value not in (None, "")}

    def arguments(self, host: str, directory: Path) -> list[str]:
        """The command line after `locust`."""
        weights = [{"user_class_name": name, "weight": weight} for name, weight in self.users.items()]
        tag = str(self.options.get("global-tag", ""))
        given: dict[str, Any] = {
            "host": host,
            "users": self.count,
            "spawn-rate": f"{self.spawn_rate or self.count:g}",
            "record": directory,
            # Failed requests are in the recording; with this option any other code is a failure of locust itself.
            "exit-code-on-error": 0,
            # What `Harness.seed` wrote to the tag, so that responses can be checked.
            "layout": "random",
        }
        given |= {"scenario": tag} if tag in SCENARIOS else {}
        if self.seconds is not None:
            given["run-time"] = f"{max(1, round(self.seconds))}s"
        if self.processes > 1:
            # By default master and workers use a fixed port on all addresses, and concurrent runs would conflict.
            port = free_port()
            given |= {"processes": self.processes, "master-bind-host": "127.0.0.1"}
            given |= {"master-bind-port": port, "master-port": port}
        given |= dict(self.options)
        words = ["-f", ",".join(str(ROOT / "loadtests" / name) for name in FILES), "--headless", "--only-summary"]
        # One option with all values, because a repeated option would replace the first.
        words += ["--config-users", *(json.dumps(config) for config in weights)]
        for name, value in given.items():
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return [*words, *self.users]


def run(host: str, load: Load, directory: Path) -> Recording:
    """Put the load on `host` and return the recording; the directory is created and gets the output in `locust.log`.

    Raises `ServiceError` if locust fails, with the last line of its output, if it does not end in time, if one
    of its processes ends early, or if it sends no request.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "locust.log"
    with log.open("w") as output:
        environment = Settings(directory, {}).environment()
        command = [sys.executable, "-m", "locust", *load.arguments(host, directory)]
        patience = float(load.options.get("patience", PATIENCE_SECONDS))
        longest = None if load.seconds is None else load.seconds + patience + END_SECONDS
        with started(command, environment, output, STOP_SECONDS) as process:
            try:
                code = process.wait(longest)
            except subprocess.TimeoutExpired as error:
                raise ServiceError(f"locust did not end within {error.timeout:.0f} s") from error
    if code:
        raise ServiceError(f"locust failed ({code}): {last_line(log.read_text())}")
    complete = len(list(directory.glob("complete-*")))
    if complete != load.processes:
        raise ServiceError(f"{load.processes - complete} of {load.processes} processes of locust ended early")
    try:
        return Recording.read(directory)
    except ValueError as error:
        raise ServiceError(f"{error}; last line of locust's output: {last_line(log.read_text())}") from error
