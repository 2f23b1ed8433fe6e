"""Inject faults into the service under load, and report their effects on clients (python -m loadtests.chaos)."""

import argparse
import contextlib
import csv
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from cdb import env
from cdb_rest.management.quantities import IN_SECONDS, Number
from loadtests.chaos.drawing import draw
from loadtests.chaos.faults import FAULTS as PLAIN_FAULTS
from loadtests.chaos.hostile_faults import HOSTILE_FAULTS
from loadtests.chaos.play import Played, play, prepare
from loadtests.chaos.replica_faults import REPLICA_FAULTS
from loadtests.chaos.service import Serving
from loadtests.chaos.stage import Fault
from loadtests.chaos.verdict import COLUMNS, table
from loadtests.service import ServiceError, Settings, free_port
from loadtests.standby import Standby

FAULTS = PLAIN_FAULTS + HOSTILE_FAULTS + REPLICA_FAULTS
# An empty value is the default of the service; the harness has others.
AS_IN_PRODUCTION = {"CDB_STRATEGIES": "", "CDB_LOOKUP_TIMEOUT_SECONDS": ""}
FREEZE_SECONDS, QUICK_SECONDS = 30.0, 8.0

EXPLANATION = """\
Clients send requests before, during and after each fault. Readers, half of them with a new connection for each
request, check every response; writers retry a row with its idempotency key until it is acknowledged. The
columns: 504 is a JSON response with Retry-After; dropped is a connection that was refused, reset or cut, or a
response that is not JSON; wrong is any other status, or wrong content; lost is an acknowledged row that is
missing at the end or exists twice; reconnected is an idle connection that was closed between two requests.
slowest is the longest time until a response of any status. recovery is the time from the return of the failed
component to the begin of the last unsuccessful request.
"""


def main(arguments: list[str]) -> int:
    """Inject the faults.

    Returns 1 if a request was dropped, wrong or lost, or if the service did not recover in time.
    """
    options = _parser().parse_args(arguments)
    seconds = options.seconds or (QUICK_SECONDS if options.quick else FREEZE_SECONDS)
    chosen = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    directory = env.read()["CDB_DATA_DIR"] / "chaos"
    directory.mkdir(parents=True, exist_ok=True)
    # Exit with an exception, so that child processes are stopped.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    played: list[Played] = []
    try:
        for with_replica in (False, True):
            group = [fault for fault in chosen if fault.with_replica == with_replica]
            if group:
                _play_all(
                    group, Path(tempfile.mkdtemp(prefix="service-", dir=directory)), options.port, seconds, played
                )
    except ServiceError:
        return 1
    finally:
        _write(directory, played, seconds)
    print(f"\n{table([one.row for one in played])}\n{_too_short(seconds)}\nWritten to {directory}")
    return 0 if all(one.row.is_good for one in played) else 1


def _play_all(faults: list[Fault], data: Path, port: int | None, seconds: float, played: list[Played]) -> None:
    """Inject faults into one service, with a replica if the faults need it, and append the results to `played`."""
    data.chmod(0o711)
    standby = Standby(data, data / "standby") if faults[0].with_replica else None
    settings = AS_IN_PRODUCTION | ({"DATABASE_REPLICA_URLS": standby.url} if standby else {})
    serving = Serving(Settings(data, settings), port or free_port())
    try:
        with serving.running(), standby.running() if standby else contextlib.nullcontext():
            frozen = prepare(serving)
            if standby:
                standby.wait_until_caught_up()
            for number, fault in enumerate(faults):
                print(f"{fault.name}: {fault.what}", flush=True)
                played.append(play(fault, serving, frozen, number, seconds, standby))
                _say(played[-1])
    except ServiceError as error:
        print(f"chaos: {error}\n" + "\n".join(serving.lines[-20:]), file=sys.stderr)
        raise


def _too_short(seconds: float) -> str:
    """A remark for a run whose faults are shorter than the default; empty otherwise."""
    if seconds >= FREEZE_SECONDS:
        return ""
    return (
        f"\nToo short for a verdict: the faults lasted {seconds:g} s instead of {FREEZE_SECONDS:g} s. Requests that are dropped, "
        "wrong or lost show a fault of the service. A run without them does not show that the service withstands longer faults.\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests.chaos", description=__doc__, epilog=EXPLANATION)
    parser.add_argument(
        "--only",
        action="append",
        choices=[fault.name for fault in FAULTS],
        help="inject this fault only; may be repeated",
    )
    parser.add_argument(
        "--seconds", **IN_SECONDS,
        help=f"duration of faults that do not end by themselves (default: {FREEZE_SECONDS:.0f}s)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help=f"the same as --seconds {QUICK_SECONDS:.0f}s")
    parser.add_argument(
        "--port", action=Number, kind=int, least=1, most=65535, help="TCP port of the service (default: a free one)"
    )
    return parser


def _say(one: Played) -> None:
    cells = one.row.cells()
    text = one.row.skipped or ", ".join(f"{name} {cells[name]}" for name in COLUMNS[1:])
    print(f"  {text}", flush=True)
    if one.replica_reads:
        print(f"    {_replica_text(one)}", flush=True)
    for message in one.messages[:10]:
        print(f"    {message}", flush=True)


def _replica_text(one: Played) -> str:
    """The reads from the replica by outcome: served, or left to the primary (behind, failed)."""
    return "reads from the replica: " + ", ".join(
        f"{outcome} {count:,}" for outcome, count in sorted(one.replica_reads.items())
    )


def _write(directory: Path, played: list[Played], seconds: float) -> None:
    if not played:
        return
    rows = [one.row.cells() for one in played]
    with (directory / "chaos.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (directory / "chaos.json").write_text(json.dumps(rows, indent=2) + "\n")
    since = "\n".join(
        f"- {one.row.fault}: {one.row.what}; recovery counts from: {one.row.since}."
        + (f" {_replica_text(one).capitalize()}." if one.replica_reads else "")
        for one in played
    )
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    shown = f"{table([one.row for one in played])}\n{_too_short(seconds)}"
    report = f"# Faults under load, {date}\n\n{shown}\n{EXPLANATION}\n{since}\n"
    (directory / "chaos.md").write_text(report)
    (directory / "chaos.svg").write_text(draw(played))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
