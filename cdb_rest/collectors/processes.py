"""Metrics of the gunicorn processes: number, threads, memory and open files."""

import os
from collections import defaultdict
from contextlib import suppress

import psutil
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from cdb_rest.metrics.slots import Owner, here
from cdb_rest.metrics.values import shared_slots


def read() -> list[Metric]:
    """The metrics of this module, summed over the processes of each gunicorn instance.

    If the processes do not share their metrics, only this process is counted. The master process counts with its memory
    and files, but has no threads that handle requests. Raises `OSError` as `Slots.living`, which it calls, does.
    """
    processes = GaugeMetricFamily(
        "cdb_processes", "gunicorn processes, including the master of each instance.", labels=["pool"]
    )
    threads = GaugeMetricFamily("cdb_threads", "Threads that handle requests.", labels=["pool"])
    memory = GaugeMetricFamily(
        "cdb_process_resident_memory_bytes",
        "Resident memory of the processes; shared memory counts once for each.",
        labels=["pool"],
    )
    files = GaugeMetricFamily("cdb_process_open_fds", "Open files and connections of the processes.", labels=["pool"])
    families = [processes, threads, memory, files]
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    slots = shared_slots()
    for owner in slots.living() if slots else [Owner(os.getpid(), here.pool, here.threads)]:
        # The process may have ended in the meantime.
        with suppress(psutil.Error):
            process = psutil.Process(owner.pid)
            own = (1, owner.threads, process.memory_info().rss, process.num_fds())
            totals[owner.pool] = [total + figure for total, figure in zip(totals[owner.pool], own, strict=True)]
    for pool, figures in sorted(totals.items()):
        for family, figure in zip(families, figures, strict=True):
            family.add_metric([pool], figure)
    return [*families]
