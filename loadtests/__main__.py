"""`python -m loadtests`: what `make load` runs."""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from cdb.env import ROOT, ConfigurationError
from loadtests.bench.__main__ import prepare_process
from loadtests.campaigns.stage import NeedsOwnServiceError, Stage
from loadtests.service import ServiceError

# Each is the module of this name in loadtests/campaigns: its first line tells its question, `run` answers it, and options of its
# own come from `add_options(parser)`, if it has that.
NAMES = (
    "smoke",
    "scenarios",
    "threads",
    "workers",
    "types-iovs",
    "endpoints",
    "growth",
)  # fmt: skip
CAMPAIGNS: dict[str, ModuleType] = {
    name: importlib.import_module(f"loadtests.campaigns.{name.replace('-', '_')}") for name in NAMES
}
COMMON = {"do", "name", "host", "quick", "directory"}


def main(arguments: Sequence[str]) -> int:
    """The code is 0 if the campaign met its targets, 1 if not or if it could not be run."""
    options = _parser().parse_args(arguments)
    return options.do(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests", description="Load tests and their reports.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    campaign = commands.add_parser("campaign", help="run a campaign and write its report")
    names = campaign.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, module in CAMPAIGNS.items():
        question = (module.__doc__ or "").strip().split("\n", 1)[0].replace("%", "%%")
        _add_common(own := names.add_parser(name, help=question, description=module.__doc__))
        if hasattr(module, "add_options"):
            module.add_options(own.add_argument_group(f"options of {name}"))
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(do=_campaign)
    parser.add_argument("--host", default="", metavar="URL", help="a deployment (default: a service of our own)")
    parser.add_argument("--quick", action="store_true", help="as little as shows that all works")
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "load", help="where data and reports go")


def _own(options: argparse.Namespace) -> dict[str, str]:
    """What the campaign's own options say, as text by name; several values are put apart by spaces."""
    given = {name: value for name, value in vars(options).items() if name not in COMMON and value is not None}
    return {name: " ".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in given.items()}


def _campaign(options: argparse.Namespace) -> int:
    prepare_process()
    directory = options.directory.resolve()
    output = directory / f"{options.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    host = options.host.rstrip("/")
    stage = Stage(directory / "data", output=output, host=host, quick=options.quick, options=_own(options))
    stage.data.mkdir(parents=True, exist_ok=True)
    output.mkdir(parents=True)
    try:
        with stage.running_database():
            findings = CAMPAIGNS[options.name].run(stage)
    except NeedsOwnServiceError:
        sys.stderr.write(f"load: {options.name} starts services of its own; it can't be pointed at --host\n")
        return 1
    except (ServiceError, ConfigurationError, OSError) as error:
        sys.stderr.write(f"load: {error}\n")
        return 1
    print(f"{findings.summary}. {'Passed' if findings.passed else 'Failed'}.{os.linesep}{output}")
    return 0 if findings.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
