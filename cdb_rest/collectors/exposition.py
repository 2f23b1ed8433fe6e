"""The response to a Prometheus scrape. It waits for database, PgBouncer and nginx at most `TIMEOUT_SECONDS` in all."""

import logging
import platform
import threading
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from time import monotonic

import django
from prometheus_client import CollectorRegistry, Metric, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from cdb_rest.collectors import database, nginx, pgbouncer, processes
from cdb_rest.metrics import counts
from cdb_rest.metrics.slots import here

logger = logging.getLogger(__name__)

# The time that all sources together have. The metrics of a source that has not responded by then are left out.
TIMEOUT_SECONDS = 2.5
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


class Source:
    """A source of metrics. It is read in a separate thread, so that a source that hangs does not block the scrape.

    Only one thread at a time may call the methods.
    """

    def __init__(self, name: str, read: Callable[[], list[Metric]]) -> None:
        self.name = name
        self._read = read
        self._thread = threading.Thread()
        self._found: list[Metric] = []

    def begin(self) -> None:
        """Start to read the source, unless the previous read is still running. `end` then waits for that read."""
        if not self._thread.is_alive():
            self._found = []
            self._thread = threading.Thread(target=self._run, name=f"scrape-{self.name}", daemon=True)
            self._thread.start()

    def end(self, deadline: float) -> list[Metric]:
        """The metrics of the source, after the gauge `cdb_<name>_up`; only the gauge if the source did not respond.

        Waits for the read until `deadline`, a value of `time.monotonic()`. The gauge is 1 if the read returned metrics
        in time, otherwise 0.
        """
        self._thread.join(max(0.0, deadline - monotonic()))
        found = [] if self._thread.is_alive() else self._found
        up = GaugeMetricFamily(
            f"cdb_{self.name}_up", f"1 if the {self.name} responded to the scrape.", int(bool(found))
        )
        return [up, *found]

    def _run(self) -> None:
        try:
            self._found = self._read()
        except Exception as error:
            logger.debug("reading the metrics of %s failed: %s", self.name, error)


SOURCES = {
    "database": Source("database", database.read),
    "pgbouncer": Source("pgbouncer", pgbouncer.read),
    "nginx": Source("nginx", nginx.read),
}
_one_at_a_time = threading.Lock()


class _Collected(Collector):
    """The metrics that are read at each scrape. The others are recorded in `metrics.counts`."""

    def collect(self) -> Iterator[Metric]:
        yield _build()
        yield from processes.read()
        exists = {"database": True, "pgbouncer": here.pooler, "nginx": here.nginx}
        sources = [source for name, source in SOURCES.items() if exists[name]]
        deadline = monotonic() + TIMEOUT_SECONDS
        for source in sources:
            source.begin()
        for source in sources:
            yield from source.end(deadline)


class _BothNames:
    """The metrics of a registry; renamed ones also under their former names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            yield metric
            if metric.name in counts.FORMER_NAMES:
                yield _under_former_name(metric)


def _under_former_name(metric: Metric) -> Metric:
    name, labels = counts.FORMER_NAMES[metric.name]
    former = Metric(name, f"The former name of {metric.name}_total.", metric.type)
    former.samples = [
        sample._replace(
            name=sample.name.replace(metric.name, name, 1),
            labels={labels.get(label, label): value for label, value in sample.labels.items()},
        )
        for sample in metric.samples
    ]
    return former


def text() -> bytes:
    """All metrics in the text format of Prometheus: of all processes that share a directory, or only of this process.

    Other threads that call it wait until it ends. Raises `OSError` as `Slots.living` does.
    """
    registry = counts.REGISTRY
    with _one_at_a_time:
        collected = CollectorRegistry(auto_describe=False)
        collected.register(_Collected())
        # These metrics are read first: `processes.read` removes the gauge files of processes that have ended.
        read = generate_latest(collected)
        if here.directory:
            registry = CollectorRegistry(auto_describe=False)
            multiprocess.MultiProcessCollector(registry, str(here.directory))
        return generate_latest(_BothNames(registry)) + read


@cache
def _build() -> Metric:
    # A container image may lack this file.
    version = tomllib.loads(PROJECT.read_text())["project"]["version"] if PROJECT.exists() else "unknown"
    return InfoMetricFamily(
        "cdb_build",
        "Versions of the running service.",
        {"version": version, "python": platform.python_version(), "django": django.get_version()},
    )
