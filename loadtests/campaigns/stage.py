"""The environment of a campaign: a local service with its database, or a remote deployment."""

import argparse
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadtests import metrics
from loadtests.campaigns import locusts
from loadtests.campaigns.locusts import Load
from loadtests.client import Client
from loadtests.harness import Harness
from loadtests.recording.reading import Recording
from loadtests.reporting.result import Run
from loadtests.service import Service, ServiceError, running
from loadtests.signals.sampling import sampled


@dataclass
class Stage(Harness):
    """One run of a campaign.

    `output` is the directory of its files, `host` the address of a remote deployment, empty for a local
    service. `quick` requests the smallest run that exercises everything. `options` are the campaign's own
    command line options. `runs` are the complete runs, for the report of a campaign that is interrupted.
    """

    output: Path = Path()
    host: str = ""
    quick: bool = False
    options: argparse.Namespace = field(default_factory=argparse.Namespace)
    service: Service | None = field(default=None, init=False)
    runs: list[Run] = field(default_factory=list, init=False)

    @property
    def url(self) -> str:
        """The address of the service under load: that of a deployment or of the local service, which must be running."""
        return self.host or self.service.host

    def size(self, full: Any, quick: Any) -> Any:
        """The size of a measurement: `quick` with --quick, otherwise `full`."""
        return quick if self.quick else full

    def client(self) -> Client:
        """A client of the service, for single requests that prepare and clean up data."""
        return Client(self.url)

    @contextlib.contextmanager
    def serving(
        self, *, scenarios: tuple[str, ...] = (), command: str = "serve", workers: int | None = None, **extra: str
    ) -> Iterator[None]:
        """Run a local service inside the block, with these scenarios (random layout, seed 1) and environment variables.

        `command` is the command of manage.py: serve or run. A remote deployment is used as it is. Raises `ServiceError`
        if `workers` or environment variables are given for a remote deployment.
        """
        if self.host:
            if workers or extra:
                raise ServiceError("this campaign starts its own services and cannot be combined with --host")
            yield
            return
        self.seed(*scenarios)
        with running(self.settings, workers=workers or 3, command=command, **extra) as service:
            self.service = service
            try:
                yield
            finally:
                self.service = None

    def load(self, label: str, load: Load, *, detailed: bool = True) -> Run:
        """Put load from locust on the service and sample its signals. Raises `ServiceError` if locust fails."""
        return self.watched(
            label, lambda directory: locusts.run(self.url, load, directory), load.settings(), detailed=detailed
        )

    def watched(
        self, label: str, record: Callable[[Path], Recording], settings: dict[str, str], *, detailed: bool = True
    ) -> Run:
        """Sample the signals while `record`, called with a directory, puts load on the service."""
        self.say(label)
        directory = self.output / "runs" / "".join(letter if letter.isalnum() else "-" for letter in label)
        before = metrics.read(self.url)
        with sampled(self.url, self.service, self.database if self.service else None) as signals:
            recording = record(directory)
        counters = metrics.difference(before, metrics.read(self.url))
        run = Run(label, recording, signals, counters, detailed, settings)
        self.runs.append(run)
        return run
