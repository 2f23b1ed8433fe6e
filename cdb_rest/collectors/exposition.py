"""The text that Prometheus gets, within a bounded time, whatever is away."""

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

# What has not answered by then is left out.
SECONDS = 2.5
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


class Source:
    """Somebody to ask, in a thread of its own, one question at a time: who does not answer keeps nobody waiting."""

    def __init__(self, name: str, read: Callable[[], list[Metric]]) -> None:
        self.name = name
        self._read = read
        self._thread = threading.Thread()
        self._found: list[Metric] = []

    def begin(self) -> None:
        """Ask, unless the last answer is still due."""
        if not self._thread.is_alive():
            self._found = []
            self._thread = threading.Thread(target=self._ask, name=f"scrape-{self.name}", daemon=True)
            self._thread.start()

    def end(self, deadline: float) -> list[Metric]:
        """What it has answered by the deadline (of `monotonic`), and whether it did."""
        self._thread.join(max(0.0, deadline - monotonic()))
        found = [] if self._thread.is_alive() else self._found
        up = GaugeMetricFamily(f"cdb_{self.name}_up", f"1 if the {self.name} has answered.", int(bool(found)))
        return [up, *found]

    def _ask(self) -> None:
        try:
            self._found = self._read()
        except Exception as error:
            logger.debug("%s was asked for its metrics in vain: %s", self.name, error)


SOURCES = {
    "database": Source("database", database.read),
    "pgbouncer": Source("pgbouncer", pgbouncer.read),
    "nginx": Source("nginx", nginx.read),
}
_one_at_a_time = threading.Lock()


class _Asked(Collector):
    """What is not counted but looked at."""

    def collect(self) -> Iterator[Metric]:
        yield _build()
        yield from processes.read()
        there = {"database": True, "pgbouncer": here.pooler, "nginx": here.nginx}
        asked = [source for name, source in SOURCES.items() if there[name]]
        deadline = monotonic() + SECONDS
        for source in asked:
            source.begin()
        for source in asked:
            yield from source.end(deadline)


def text() -> bytes:
    """All metrics, in Prometheus's format."""
    registry = counts.REGISTRY
    with _one_at_a_time:
        asked = CollectorRegistry(auto_describe=False)
        asked.register(_Asked())
        # The processes first: looking for them removes what dead ones have left.
        looked_at = generate_latest(asked)
        if here.directory:
            registry = CollectorRegistry(auto_describe=False)
            multiprocess.MultiProcessCollector(registry, str(here.directory))
        return generate_latest(registry) + looked_at


@cache
def _build() -> Metric:
    # An image may be without it.
    version = tomllib.loads(PROJECT.read_text())["project"]["version"] if PROJECT.exists() else "unknown"
    return InfoMetricFamily(
        "cdb_build",
        "What is running.",
        {"version": version, "python": platform.python_version(), "django": django.get_version()},
    )
