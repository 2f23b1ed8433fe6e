"""manage.py explain_lookup: show how PostgreSQL executes a lookup by each strategy."""

import json
import random
import time
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import OPEN, Moment
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.management.quantities import Number
from cdb_rest.management.tables import table
from cdb_rest.strategies.explain import Explanation, explain
from cdb_rest.strategies.registry import STRATEGIES, Strategy
from cdb_rest.strategies.verdicts import Verdict

# Major and minor of the load study's moments are below this (docs/load-tests.md).
MOMENT_LIMIT = 2**31
HEADER = (
    "strategy",
    "scan",
    "index",
    "condition",
    "rows read",
    "removed",
    "heap fetches",
    "buffers",
    "rows",
    "planning",
    "execution",
)


class Command(BaseCommand):
    help = (
        "Show how PostgreSQL executes a lookup by each strategy: run its statements twice with EXPLAIN (ANALYZE, BUFFERS) and "
        "summarize the second run. Numbers are totals over all loops and statements; times are measured by PostgreSQL."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        tag = parser.add_mutually_exclusive_group(required=True)
        tag.add_argument("--scenario", dest="tag", metavar="NAME", help="global tag with the name of this scenario")
        tag.add_argument("--global-tag", dest="tag", metavar="NAME", help="global tag with this name")
        parser.add_argument(
            "--strategy", metavar="NAME", help=f"one of {', '.join(STRATEGIES)} (default: all, as a table)"
        )
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
        parser.add_argument(
            "--json", action="store_true", help="print a JSON array of the verdicts with their complete plans instead"
        )

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
        begin = time.monotonic()
        query = LookupQuery(tag, Moment(*moment) if moment else _moment(pattern, seed))
        try:
            found = [explain(one, query, with_text=plan) for one in _strategies(strategy)]
        except GlobalTagNotFoundError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps([_document(one) for one in found], indent=2))
            return
        for one in found:
            for text in one.texts:
                self.stdout.write(f"-- {one.verdict.strategy}\n{text}\n")
        verdicts = [one.verdict for one in found]
        self.stdout.write(verdicts[0].line if strategy else _table(verdicts))
        took = time.monotonic() - begin
        self.stdout.write(f"Strategies explained: {len(found)}, {tag} at {query.moment} ({took:.1f} s).")


def _strategies(name: str | None) -> list[Strategy]:
    if name is None:
        return list(STRATEGIES.values())
    if name not in STRATEGIES:
        raise CommandError(f"--strategy must be one of {', '.join(STRATEGIES)} (got {name})")
    return [STRATEGIES[name]]


def _moment(pattern: str, seed: int) -> Moment:
    if pattern == "random":
        source = random.Random(seed)  # noqa: S311 -- a reproducible moment, not a secret
        return Moment(source.randrange(MOMENT_LIMIT), source.randrange(MOMENT_LIMIT))
    both = 0 if pattern == "first" else MOMENT_LIMIT - 1
    return Moment(both, both)


def _table(verdicts: list[Verdict]) -> str:
    rows = [
        (
            one.strategy,
            one.kind,
            one.index,
            one.condition,
            f"{one.rows_read:,}",
            f"{one.rows_removed:,}",
            f"{one.heap_fetches:,}",
            f"{one.buffers:,}",
            f"{one.rows:,}",
            f"{one.planning_ms:.1f} ms",
            f"{one.execution_ms:.1f} ms",
        )
        for one in verdicts
    ]
    advice = [f"{one.strategy}: {one.advice}" for one in verdicts if one.missing_index]
    return "\n".join([table(HEADER, rows), *advice])


def _document(one: Explanation) -> dict[str, Any]:
    verdict = one.verdict
    summary = {
        "verdict": verdict.line,
        "scan": verdict.kind,
        "index": verdict.index,
        "condition": verdict.condition,
        "rows_read": verdict.rows_read,
        "rows_removed": verdict.rows_removed,
        "heap_fetches": verdict.heap_fetches,
    }
    return asdict(verdict) | summary | {"plans": one.plans, "texts": one.texts}
