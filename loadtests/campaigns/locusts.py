"""Runs locust without its web UI, as a process of its own, and reads what it wrote down."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cdb.env import ROOT
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests.recording.reading import Recording
from loadtests.service import ServiceError, Settings

# locust says by these that it did what it was told to; 1 is that some requests failed, which the recording knows better.
GOOD_CODES = (0, 1)
# After the end of the test, for answers that are under way.
END_SECONDS = 120


@dataclass(frozen=True)
class Load:
    """What locust is told: user classes (with weights, if they are not all alike), how many users in all, how many begin each
    second, for how many seconds (None: until each has done its `jobs-per-user`), our own options by name (True for those without
    a value), a shape, processes.

    Options that are not given are locust's own, but for the scenario of the global tag and its layout, which are what `Rig.seed`
    seeds. Of classes in `fixed` there are so many users, and of the others, by weight, what is left of `count`. `campaign_users`
    says that some are among those that only campaigns have.
    """

    users: Mapping[str, int]
    count: int
    seconds: float | None = None
    spawn_rate: float | None = None
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    shape: str | None = None
    processes: int = 1
    fixed: Mapping[str, int] = field(default_factory=dict)
    campaign_users: bool = False

    def settings(self) -> dict[str, str]:
        """The same for reports, without what is not set."""
        users = ", ".join(name if len(self.users) == 1 else f"{weight} × {name}" for name, weight in self.users.items())
        words = {"users": f"{self.count:,} ({users})", "seconds": self.seconds, "shape": self.shape}
        words |= {"users a second at the start": self.spawn_rate, "processes": self.processes}
        return {name: str(value) for name, value in (words | dict(self.options)).items() if value is not None}

    def arguments(self, host: str, directory: Path) -> list[str]:
        """The command line after `locust`."""
        files = ["locustfile.py", *(["locustfile_campaigns.py"] if self.campaign_users else [])]
        words = ["-f", ",".join(str(ROOT / "loadtests" / name) for name in files)]
        # The last one of several such options would be the only one, and it takes all words up to the next option.
        words += ["--config-users", *(json.dumps(told) for told in self._config())]
        words += ["--headless", "--only-summary", "--host", host]
        words += ["--users", str(self.count), "--spawn-rate", f"{self.spawn_rate or self.count:g}"]
        words += ["--record", str(directory)]
        if self.seconds is not None:
            words += ["--run-time", f"{max(1, round(self.seconds))}s"]
        if self.processes > 1:
            words += ["--processes", str(self.processes)]
        if self.shape:
            words += ["--shape", self.shape]
        for name, value in (self._content() | dict(self.options)).items():
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return [*words, *self.users, *(name for name in self.fixed if name not in self.users)]

    def _content(self) -> dict[str, str]:
        """What `Rig.seed` put into the tag, so that answers can be checked."""
        tag = str(self.options.get("global-tag", ""))
        return {"layout": "random"} | ({"scenario": tag} if tag in SCENARIOS else {})

    def _config(self) -> list[dict[str, str | int]]:
        weights = [{"user_class_name": name, "weight": weight} for name, weight in self.users.items()]
        return weights + [{"user_class_name": name, "fixed_count": count} for name, count in self.fixed.items()]


def run(host: str, load: Load, directory: Path) -> Recording:
    """Put the load on `host`; what locust says is in `locust.log` in the directory, which is made.

    Raises `ServiceError` with the last line of that if locust fails, or if it did not send a single request.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "locust.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "locust", *load.arguments(host, directory)],
            cwd=ROOT, env=Settings(directory, {}).environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(None if load.seconds is None else load.seconds + END_SECONDS)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if code not in GOOD_CODES:
        lines = log.read_text().strip().splitlines() or ["no output"]
        raise ServiceError(f"locust failed ({code}): {lines[-1]}")
    try:
        return Recording.read(directory)
    except ValueError as error:
        raise ServiceError(f"{error}: what locust said is in {log.name} there") from error
