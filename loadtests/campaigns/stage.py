"""What campaigns work on: a service of our own with its database, or a deployment somewhere else."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from loadtests import metrics
from loadtests.campaigns import locusts, sampling
from loadtests.campaigns.locusts import Load
from loadtests.recording.reading import Recording
from loadtests.reporting.findings import Run
from loadtests.rig import Rig
from loadtests.service import Service, running


class NeedsOwnServiceError(Exception):
    """The campaign seeds or restarts the service, which a deployment that was named by --host does not let it do."""


@dataclass
class Stage(Rig):
    """One run of a campaign: `output` is where its files go, `host` the address of a deployment, empty for a service of our own.
    `quick` asks for as little as shows that all works. `options` are what the command line says besides, `runs`
    what is complete, for the report of a campaign that is interrupted."""

    output: Path = Path()
    host: str = ""
    quick: bool = False
    options: dict[str, str] = field(default_factory=dict)
    service: Service | None = field(default=None, init=False)
    runs: list[Run] = field(default_factory=list, init=False)

    @property
    def url(self) -> str:
        """Where load goes."""
        return self.host or f"http://127.0.0.1:{self.own.port}"

    @property
    def own(self) -> Service:
        """Our own running service. Raises `NeedsOwnServiceError` if it is somebody else's."""
        if self.service is None:
            raise NeedsOwnServiceError
        return self.service

    @contextlib.contextmanager
    def serving(self, *, scenarios: tuple[str, ...] = (), command: str = "serve", **extra: str) -> Iterator[None]:
        """Inside the block the service runs with these scenarios (random layout, seed 1), by `manage.py serve` or `run`, with
        more environment variables; a deployment is taken as it is.

        Raises `NeedsOwnServiceError` if a deployment would have to be started otherwise.
        """
        if self.host:
            if extra:
                raise NeedsOwnServiceError
            yield
            return
        self.seed(*scenarios)
        workers = int(extra.pop("CDB_WORKERS", 3))
        with running(self.settings, workers=workers, command=command, **extra) as service:
            self.service = service
            try:
                yield
            finally:
                self.service = None

    def load(self, label: str, load: Load, *, detailed: bool = True) -> Run:
        """Put load on the service and watch it meanwhile. Raises `ServiceError` if locust fails."""
        return self.watched(
            label, lambda directory: locusts.run(self.url, load, directory), load.settings(), detailed=detailed
        )

    def watched(
        self, label: str, record: Callable[[Path], Recording], settings: dict[str, str], *, detailed: bool = True
    ) -> Run:
        """Watch the service while `record`, which is given a directory, puts load on it."""
        self.say(label)
        directory = self.output / "runs" / "".join(letter if letter.isalnum() else "-" for letter in label)
        before = metrics.read(self.url)
        with sampling.sampled(self.url, self, self.service) as seen:
            recording = record(directory)
        rise = metrics.difference(before, metrics.read(self.url))
        run = Run(label, recording, seen, rise, detailed, settings)
        self.runs.append(run)
        return run
