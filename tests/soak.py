"""Play random histories and races of writers for as long as told: python -m tests.soak --minutes 10

Each core plays in a process and a database of its own. The first thing that goes wrong ends it, with the seed of all random
choices: with it the same histories are played again, and the same writes race, if not in the same order.
"""

import argparse
import logging
import multiprocessing
import os
import queue
import random
import sys
import tempfile
import time
import traceback
from collections import Counter

from tqdm import tqdm

from cdb_rest.management.quantities import Duration
from cdb_rest.rules.moment import Mode

WRITERS = 20
WRITES_EACH = 10
STEPS_OF_A_HISTORY = 50
HISTORIES_AT_ONCE = 5


class Retries(logging.Handler):
    """Counts what the service plays again."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


def play(number: int, seed: int, deadline: float, reports: multiprocessing.Queue) -> None:
    """Play until the deadline; report what was played after each portion, and at last an empty report or what went wrong."""
    import django

    django.setup()
    from django.db import connection
    from django.test.utils import setup_test_environment

    setup_test_environment()
    connection.settings_dict["TEST"]["NAME"] = f"soak_{number}"
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    retries, journal = Retries(), logging.getLogger("cdb_rest.writes.transactions")
    journal.addHandler(retries)
    journal.setLevel(logging.INFO)
    journal.propagate = False
    # The races damage compiled tags on purpose.
    logging.getLogger("cdb_rest.compiled").propagate = False
    chance = random.Random(f"{seed} {number}")
    try:
        while time.monotonic() < deadline:
            for portion in (histories, race):
                retries.count = 0
                report = portion(chance.randrange(10**9))
                reports.put(report | {"retries": retries.count})
        reports.put({})
    except BaseException:
        reports.put({"error": traceback.format_exc()})


def histories(seed: int) -> dict[str, int]:
    """Some histories in a world of their own."""
    from django.test import override_settings
    from hypothesis import HealthCheck
    from hypothesis import seed as hypothesis_seed
    from hypothesis import settings as hypothesis_settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.histories.judge import played
    from tests.histories.machine import WORLDS

    before = Counter(played)
    machine, mode = random.Random(seed).choice(list(WORLDS.values()))
    portion = hypothesis_settings(
        max_examples=HISTORIES_AT_ONCE,
        stateful_step_count=STEPS_OF_A_HISTORY,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    with override_settings(CDB_IOV_MODE=mode):
        run_state_machine_as_test(hypothesis_seed(seed)(machine), settings=portion)
    return {name: played[name] - before[name] for name in ("steps", "lookups", "lookups in the past")}


def race(seed: int) -> dict[str, int]:
    """Writers at the same time, with real commits, into one tag or several, which are compiled meanwhile."""
    from django.core.management import call_command
    from django.test import override_settings

    from cdb_rest.maintenance.repair import find_faults
    from tests.builders import make_statuses
    from tests.histories.race_proof import RaceProof
    from tests.histories.test_writers import Connection
    from tests.histories.writers import GRID, Race
    from tests.lookup.compiling import compiled_tags_in, compiling_beside

    chance = random.Random(seed)
    mode = chance.choice(["continuous", "discrete"])
    with override_settings(CDB_IOV_MODE=mode):
        make_statuses()
        contest = Race(Connection, seed=seed, tags=chance.randint(1, 4), discrete=mode == "discrete")
        with (
            tempfile.TemporaryDirectory() as directory,
            compiled_tags_in(directory),
            compiling_beside(contest.tags, GRID, Mode(mode), seed),
        ):
            contest.run(writers=WRITERS, writes_each=WRITES_EACH)
        RaceProof(contest, Connection()).verify()
        assert find_faults() == []
    call_command("flush", verbosity=0, interactive=False)
    return {"races": 1, "writes": len(contest.writes)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.split(":")[0] + ".")
    parser.add_argument(
        "--minutes",
        action=Duration,
        unit="min",
        above=0,
        default=10,
        metavar="TIME",
        help="how long to play (default: 10min)",
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all random choices; default: the time")
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    from tests import postgres

    reports = multiprocessing.get_context("spawn").Queue()
    deadline = time.monotonic() + arguments.minutes * 60
    players = [
        multiprocessing.get_context("spawn").Process(
            target=play, args=(number, arguments.seed, deadline, reports), daemon=True
        )
        for number in range(os.cpu_count() or 1)
    ]
    try:
        with postgres.running():
            try:
                for player in players:
                    player.start()
                total, error = follow(players, reports, arguments.minutes * 60)
            finally:
                for player in players:
                    if player.pid is not None:
                        player.terminate()
                        player.join()
    finally:
        postgres.pytest_unconfigure()
    sys.stdout.write(f"Seed {arguments.seed}: {summary(total)}.\n")
    sys.stdout.write(f"It went wrong:\n{error}" if error else "Nothing went wrong.\n")
    return 1 if error else 0


def follow(players: list, reports: multiprocessing.Queue, seconds: float) -> tuple[Counter, str]:
    """Show the progress until all are done; returns what was played, and what went wrong, if anything."""
    total: Counter = Counter()
    playing, begin = len(players), time.monotonic()
    with tqdm(total=round(seconds), unit="s", bar_format="{l_bar}{bar}| {n}/{total} s{postfix}", disable=None) as bar:
        while playing:
            try:
                report = reports.get(timeout=1)
            except queue.Empty:
                if not any(player.is_alive() for player in players):
                    return total, "A player ended without a word.\n"
                report = {"nothing": 0}
            if "error" in report:
                return total, report["error"]
            playing -= not report
            total.update(report)
            bar.set_postfix_str(summary(total), refresh=False)
            bar.n = min(round(time.monotonic() - begin), bar.total)
            bar.refresh()
    return total, ""


def summary(total: Counter) -> str:
    """What was played, in words."""
    return (
        f"{total['steps']:,} steps of histories with {total['lookups']:,} lookups and "
        f"{total['lookups in the past']:,} in the past, {total['races']:,} races of {WRITERS} "
        f"writers with {total['writes']:,} writes, {total['retries']:,} played again"
    )


if __name__ == "__main__":
    sys.exit(main())
