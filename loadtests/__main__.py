"""`python -m loadtests`: what `make load` runs."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cdb.env import ROOT, ConfigurationError
from loadtests.bench.__main__ import prepare_process
from loadtests.campaigns import smoke
from loadtests.campaigns.stage import NeedsOwnServiceError, Stage
from loadtests.service import ServiceError

CAMPAIGNS = {"smoke": smoke}


def main(arguments: Sequence[str]) -> int:
    """The code is 0 if the campaign met its targets, 1 if not or if it could not be run."""
    options = _parser().parse_args(arguments)
    return options.do(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests", description="Load tests and their reports.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    campaign = commands.add_parser("campaign", help="run a campaign and write its report")
    campaign.set_defaults(do=_campaign)
    described = "; ".join(f"{name}: {module.__doc__.strip()}" for name, module in CAMPAIGNS.items())
    campaign.add_argument("name", choices=CAMPAIGNS, help=described)
    campaign.add_argument("--host", default="", metavar="URL", help="a deployment (default: a service of our own)")
    campaign.add_argument("--quick", action="store_true", help="as little as shows that all works")
    campaign.add_argument("--directory", type=Path, default=ROOT / "var" / "load", help="where data and reports go")
    return parser


def _campaign(options: argparse.Namespace) -> int:
    prepare_process()
    directory = options.directory.resolve()
    output = directory / f"{options.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    stage = Stage(directory / "data", output=output, host=options.host.rstrip("/"), quick=options.quick)
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
