"""manage.py capacity"""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cdb.management.capacity import SERVICE_SECONDS, Capacity
from cdb.processes.machine import memory_megabytes
from cdb.serving.pools import cores_here
from cdb_rest.management.quantities import Duration, Number, Size
from cdb_rest.management.tables import table


class Command(BaseCommand):
    help = (
        "Estimate what `make serve` would start on a machine of a given size, how many requests each part handles at a time, "
        "how many lookups per second that gives, which resource is exhausted first, and whether a number of users fits. "
        "Nothing is measured; `make bench` measures."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        here = memory_megabytes() / 1024
        parser.add_argument(
            "--cores",
            action=Number,
            kind=int,
            least=1,
            most=10_000,
            default=cores_here(),
            metavar="N",
            help="cores of the machine (default: those of this one, %(default)s)",
        )
        parser.add_argument(
            "--memory",
            action=Size,
            unit="GiB",
            above=0,
            most=2**20,
            default=here,
            metavar="SIZE",
            help=f"memory of the machine (default: that of this one, {here:.1f}GiB)",
        )
        parser.add_argument(
            "--service-time-ms",
            action=Duration,
            unit="ms",
            above=0,
            most=10**9,
            metavar="TIME",
            default=round(1000 * SERVICE_SECONDS, 1),
            help="CPU time of a lookup in all programs, from nginx to PostgreSQL (default: %(default)sms, as measured)",
        )
        parser.add_argument(
            "--users",
            action=Number,
            kind=int,
            least=0,
            most=10**9,
            default=1000,
            metavar="N",
            help="number of jobs that send one request after the other (default: %(default)s)",
        )
        parser.add_argument(
            "--think-time",
            action=Duration,
            unit="s",
            least=0,
            most=10**9,
            default=120,
            metavar="TIME",
            help="time between a response and the next request of the same user (default: %(default)ss)",
        )
        parser.add_argument(
            "--json", action="store_true", help="print a JSON object, with times in seconds and memory in MiB"
        )

    def handle(
        self, *, cores: int, memory: float, service_time_ms: float, users: int, think_time: float, **options: Any
    ) -> None:
        found = Capacity(cores, max(1, round(memory * 1024)), service_time_ms / 1000, users, think_time)
        if options["json"]:
            self.stdout.write(json.dumps(_document(found), indent=2))
            return
        self.stdout.write(f"{cores} cores, {memory:.1f} GiB, {service_time_ms:g} ms of CPU time for each lookup\n\n")
        hops = [(hop.name, hop.what, f"{hop.count:,}", hop.set_by) for hop in found.hops()]
        self.stdout.write(table(("hop", "what", "count", "set by"), hops) + "\n\n")
        bounds = [(bound.resource, f"{bound.answers_per_second:,.0f}") for bound in found.bounds()]
        self.stdout.write(table(("lookups are limited by", "responses/s"), bounds) + "\n\n")
        settings = list(found.settings_of_postgresql().items())
        self.stdout.write(table(("PostgreSQL", ""), settings) + "\n\n")
        share, response = f"{found.queue.utilisation:.0%}", f"{1000 * found.queue.response_seconds:,.1f} ms"
        self.stdout.write(
            f"{users:,} users with {think_time:g} s of think time send {found.queue.arrivals_per_second:,.1f} requests/s: "
            f"{share} of {found.most_per_second:,.0f} responses/s, mean response time {response}.\n"
            f"First bottleneck: {found.bounds()[0].resource}. Recommended maximum: {found.queue.most_users:,} such users.\n"
            f"Verdict: {found.verdict}."
        )


def _document(found: Capacity) -> dict[str, Any]:
    return asdict(found) | {
        "hops": [asdict(hop) for hop in found.hops()],
        "bounds": [asdict(bound) for bound in found.bounds()],
        "postgresql": found.settings_of_postgresql(),
        "arrivals_per_second": found.queue.arrivals_per_second,
        "most_per_second": found.most_per_second,
        "answers_per_second": found.queue.answers_per_second,
        "utilisation": found.queue.utilisation,
        "response_seconds": found.queue.response_seconds,
        "most_users": found.queue.most_users,
        "verdict": found.verdict,
    }
