"""The processes that count together: how many they are and what they take."""

import os
from collections import defaultdict
from contextlib import suppress

import psutil
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from cdb_rest.metrics.slots import Owner, here
from cdb_rest.metrics.values import shared_slots


def read() -> list[Metric]:
    """The figures of each gunicorn instance, all its processes together. Its first process, which answers nothing, has no
    threads to answer with, but memory and files like the others."""
    processes = GaugeMetricFamily(
        "cdb_processes", "gunicorn's processes, the first one of each instance too.", labels=["pool"]
    )
    threads = GaugeMetricFamily("cdb_threads", "Threads that answer requests.", labels=["pool"])
    memory = GaugeMetricFamily(
        "cdb_process_resident_memory_bytes",
        "Memory of the processes; what they share counts for each.",
        labels=["pool"],
    )
    files = GaugeMetricFamily("cdb_process_open_fds", "Files and connections that they have open.", labels=["pool"])
    families = [processes, threads, memory, files]
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    slots = shared_slots()
    for owner in slots.living() if slots else [Owner(os.getpid(), here.pool, here.threads)]:
        # It may have ended meanwhile.
        with suppress(psutil.Error):
            process = psutil.Process(owner.pid)
            own = (1, owner.threads, process.memory_info().rss, process.num_fds())
            totals[owner.pool] = [total + figure for total, figure in zip(totals[owner.pool], own, strict=True)]
    for pool, figures in sorted(totals.items()):
        for family, figure in zip(families, figures, strict=True):
            family.add_metric([pool], figure)
    return [*families]
