"""manage.py explain_lookup: show how PostgreSQL executes a lookup by each strategy."""

import json
import random
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from cdb_rest.lookup.model import LookupQuery
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import table
from cdb_rest.management.quantities import Number
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.strategies.explain import Explanation, explain
from cdb_rest.strategies.registry import STRATEGIES

# Major and minor of the load study's moments are below this (docs/load-tests.md).
MOMENT_LIMIT = 2**31
HEADER = ("strategy", "indexes", "buffers", "planning", "execution")


class Command(ServiceCommand):
    help = (
        "Show how PostgreSQL executes a lookup by each strategy: run its statements twice with EXPLAIN (ANALYZE, BUFFERS) and "
        "print totals of the second run: the indexes, the pages of shared buffers, and PostgreSQL's times."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        tag = parser.add_mutually_exclusive_group(required=True)
        tag.add_argument("--scenario", dest="tag", metavar="NAME", help="global tag with the name of this scenario")
        tag.add_argument("--global-tag", dest="tag", metavar="NAME", help="global tag with this name")
        parser.add_argument("--strategy", choices=STRATEGIES, help="one of the strategies (default: all)")
        moment = parser.add_mutually_exclusive_group()
        moment.add_argument(
            "--pattern",
            choices=["first", "random", "last"],
            default="random",
            help="moment: first is (0, 0), last is (2^31-1, 2^31-1), random has major and minor below 2^31 "
            "(default: %(default)s)",
        )
        moment.add_argument(
            "--moment",
            nargs=2,
            action=Number,
            kind=int,
            least=0,
            most=OPEN,
            metavar=("MAJOR", "MINOR"),
            help="the moment of the lookup, instead of --pattern",
        )
        parser.add_argument(
            "--seed",
            action=Number,
            kind=int,
            default=1,
            metavar="N",
            help="number that the random moment is derived from (default: %(default)s)",
        )
        parser.add_argument("--plan", action="store_true", help="also print the plans as text")
        parser.add_argument("--json", action="store_true", help="print a JSON array with the complete plans instead")

    def handle(
        self,
        *,
        tag: str,
        strategy: str | None,
        pattern: str,
        moment: list[int] | None,
        seed: int,
        plan: bool,
        **options: Any,
    ) -> None:
        query = LookupQuery(tag, Moment(*moment) if moment else _moment(pattern, seed))
        chosen = [STRATEGIES[strategy]] if strategy else STRATEGIES.values()
        found = [explain(item, query, with_text=plan) for item in chosen]
        if options["json"]:
            self.stdout.write(json.dumps([asdict(item) for item in found], indent=2))
            return
        for item in found:
            for text in item.texts:
                self.stdout.write(f"-- {item.strategy}\n{text}\n")
        self.stdout.write(_table(found))
        self.stdout.write(f"Strategies explained: {len(found)}, {tag} at {query.moment} ({self.took()}).")


def _moment(pattern: str, seed: int) -> Moment:
    if pattern == "random":
        source = random.Random(seed)  # noqa: S311 -- a reproducible moment, not a secret
        return Moment(source.randrange(MOMENT_LIMIT), source.randrange(MOMENT_LIMIT))
    both = 0 if pattern == "first" else MOMENT_LIMIT - 1
    return Moment(both, both)


def _table(found: list[Explanation]) -> str:
    rows = [
        (
            item.strategy,
            ", ".join(item.indexes()),
            f"{item.total('Shared Hit Blocks') + item.total('Shared Read Blocks'):,}",
            f"{item.total('Planning Time'):.1f} ms",
            f"{item.total('Execution Time'):.1f} ms",
        )
        for item in found
    ]
    advice = [
        f"{item.strategy}: its index {item.missing_index} is missing (manage.py strategy_indexes create)"
        for item in found
        if item.missing_index
    ]
    return "\n".join([table(HEADER, rows), *advice])
