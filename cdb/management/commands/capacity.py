"""manage.py capacity"""

import json
import math
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb.management.capacity import SERVICE_SECONDS, Capacity
from cdb.processes.machine import memory_megabytes
from cdb.serving.pools import cores_here
from cdb_rest.management.tables import table


class Command(BaseCommand):
    help = (
        "Say what make serve would start on a machine of some size, what each hop takes at once, how many lookups a second that "
        "makes, what runs out first, and whether so many users fit. An estimate: for one that counts, measure."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--cores", type=int, default=cores_here(), help="cores of the machine (this one's: %(default)s)"
        )
        here = memory_megabytes() / 1024
        parser.add_argument(
            "--memory", type=float, default=here, metavar="GB", help=f"its memory (this one's: {here:.1f})"
        )
        parser.add_argument(
            "--service-time-ms",
            type=float,
            default=round(1000 * SERVICE_SECONDS, 1),
            metavar="MS",
            help="time that a lookup takes of the cores, from nginx to PostgreSQL (as measured: %(default)s)",
        )
        parser.add_argument("--users", type=int, default=1000, help="jobs that ask again and again (%(default)s)")
        parser.add_argument(
            "--think-time",
            type=float,
            default=120,
            metavar="SECONDS",
            help="between an answer and their next question (%(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="for programs; times in seconds, memory in megabytes")

    def handle(
        self, *, cores: int, memory: float, service_time_ms: float, users: int, think_time: float, **options: Any
    ) -> None:
        if not all(map(math.isfinite, (memory, service_time_ms, think_time))):
            raise CommandError("Memory and times are finite numbers.")
        if cores < 1 or memory <= 0 or service_time_ms <= 0 or users < 0 or think_time < 0:
            raise CommandError(
                "A machine has cores and memory, a service takes its time, and nobody is less than nobody."
            )
        found = Capacity(cores, round(memory * 1024), service_time_ms / 1000, users, think_time)
        if options["json"]:
            self.stdout.write(json.dumps(_document(found), indent=2))
            return
        self.stdout.write(f"{cores} cores, {memory:.1f} GB, {service_time_ms:g} ms of a core for each lookup\n\n")
        rows = [(hop.name, hop.what, f"{hop.count:,}", hop.set_by) for hop in found.hops()]
        self.stdout.write(table(("hop", "what", "count", "set by"), rows) + "\n\n")
        rows = [(bound.resource, f"{bound.answers_per_second:,.0f}") for bound in found.bounds()]
        self.stdout.write(table(("lookups are limited by", "answers/s"), rows) + "\n\n")
        rows = list(found.settings_of_postgresql().items())
        self.stdout.write(table(("PostgreSQL", ""), rows) + "\n\n")
        share, response = f"{found.queue.utilisation:.0%}", f"{1000 * found.queue.response_seconds:,.1f} ms"
        self.stdout.write(
            f"{users:,} users with {think_time:g} s between questions ask {found.queue.arrivals_per_second:,.1f} times a second: "
            f"{share} of {found.most_per_second:,.0f} answers/s, mean response {response}.\n"
            f"What saturates first: {found.bounds()[0].resource}. Comfortable up to {found.queue.most_users:,} such users.\n"
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
