"""manage.py capacity

Queueing theory: the jobs are a closed system, in which each sends a request, waits for the response, thinks, and repeats.

- Little's law and the interactive response time law: Lazowska, Zahorjan, Graham, Sevcik, Quantitative System Performance, 1984,
  chapters 3 and 5.
- The wait below saturation is that of an M/M/c queue, by Erlang's C formula: Kleinrock, Queueing Systems, volume 1, 1975, section
  3.5. It assumes independent arrivals.
"""

import json
import math
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cdb.processes.machine import cores as cores_here
from cdb.processes.machine import memory_megabytes
from cdb.serving import sizes
from cdb_rest.management.output import table
from cdb_rest.management.quantities import Duration, Number, Size

# CPU time, in all programs, of a lookup of 200 rows at a random moment among 5.2 million IOVs, without compiled lists: 2 cores
# served 538 of them in a second.
LOOKUP_MILLISECONDS = 3.7
# PostgreSQL's memory for a connection, by the rule of a large provider.
CONNECTION_MEGABYTES = 9.1
# The highest utilisation that leaves a reserve. Above it the wait grows much faster than the load.
COMFORTABLE = 0.8
MOST = 10**9


class Command(BaseCommand):
    help = (
        "Estimate how many lookups per second a machine serves with `make serve`, which resource is exhausted first, and whether "
        "a number of jobs fits. Nothing is measured; `make bench` measures."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        here = memory_megabytes() / 1024
        add = parser.add_argument
        add("--cores", action=Number, kind=int, least=1, most=10_000, default=cores_here(), metavar="N",
            help="cores of the machine (default: those of this one, %(default)s)")  # fmt: skip
        add("--memory", action=Size, unit="GiB", above=0, most=2**20, default=here, metavar="SIZE",
            help=f"memory of the machine (default: that of this one, {here:.1f}GiB)")  # fmt: skip
        add("--service-time-ms", action=Duration, unit="ms", above=0, default=LOOKUP_MILLISECONDS, metavar="TIME", most=MOST,
            help="CPU time of a lookup from nginx to PostgreSQL (default: %(default)sms, as measured)")  # fmt: skip
        add("--users", action=Number, kind=int, least=0, default=1000, metavar="N", most=MOST,
            help="number of jobs that send one request after the other (default: %(default)s)")  # fmt: skip
        add("--think-time", action=Duration, unit="s", least=0, default=120, metavar="TIME", most=MOST,
            help="time between a response and the next request of the same job (default: %(default)ss)")  # fmt: skip
        add("--json", action="store_true", help="print a JSON object, with times in seconds")

    def handle(
        self, *, cores: int, memory: float, service_time_ms: float, users: int, think_time: float, **options: Any
    ) -> None:
        service = service_time_ms / 1000
        threads = sizes.lookup_workers(cores) * sizes.threads()
        limits = {
            "cores": cores,
            "processes of granian": sizes.lookup_workers(cores),
            "threads of granian": threads,
            "memory for PostgreSQL's connections": max(1, math.floor(memory * 1024 / CONNECTION_MEGABYTES)),
        }
        resource = min(limits, key=lambda name: limits[name])
        most = limits[resource] / service
        arrivals = users / (service + think_time)
        found = {
            "threads": threads,
            "connections": threads + sizes.other_threads(cores),
            "bottleneck": resource,
            "most_per_second": most,
            "arrivals_per_second": arrivals,
            "utilisation": arrivals / most,
            "response_seconds": response_seconds(limits[resource], service, users, think_time),
            "most_users": math.floor(COMFORTABLE * most * (service + think_time)),
        }
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        texts = {name: f"{value:,.4g}" if isinstance(value, float) else str(value) for name, value in found.items()}
        self.stdout.write(table(("estimate", ""), [(name.replace("_", " "), text) for name, text in texts.items()]))
        share = arrivals / most
        verdict = "does not fit: the queue grows" if share >= 1 else "fits" if share <= COMFORTABLE else "barely fits"
        self.stdout.write(f"{users:,} jobs with {think_time:g} s of think time: {verdict}.")


def response_seconds(servers: int, service: float, users: int, think: float) -> float:
    """The mean response time in seconds, with the wait for one of `servers` that need `service` seconds for each response."""
    load = users * service / (service + think)
    if load >= servers:
        return max(service, users * service / servers - think)
    # Erlang's B formula, whose recursion does not overflow, and from it Erlang's C: the share of requests that wait.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    waiting = servers * blocked / (servers - load * (1 - blocked))
    # A job that waits sends no other request, so the queue is not longer than the number of jobs.
    return service + min(waiting * service / (servers - load), users * service / servers)
