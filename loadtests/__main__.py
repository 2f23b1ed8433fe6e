"""The command line of `python -m loadtests`, which `make load` runs."""

import argparse
import contextlib
import importlib
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from cdb.env import ROOT, ConfigurationError
from loadtests import metrics
from loadtests.campaigns import api
from loadtests.campaigns.stage import NeedsOwnServiceError, Stage
from loadtests.interruption import INTERRUPTED, prepare_process
from loadtests.recording.reading import Recording
from loadtests.reporting import campaign, compare, machine, summaries
from loadtests.reporting.figures import number
from loadtests.reporting.findings import Findings, Run
from loadtests.reporting.report import verdict
from loadtests.reporting.result import Target
from loadtests.service import ServiceError

# Each name is a module of loadtests/campaigns. The first line of its docstring is the question of the campaign,
# `run(stage)` returns the findings, and the optional `add_options(parser)` adds command line options.
NAMES = (
    "smoke", "scenarios", "threads", "workers", "types-iovs", "endpoints", "growth", "hammer", "saturation", "peak",
    "storm-cache",
)  # fmt: skip
CAMPAIGNS: dict[str, ModuleType] = {
    name: importlib.import_module(f"loadtests.campaigns.{name.replace('-', '_')}") for name in NAMES
}
# Names of the options that every campaign has; all others belong to one campaign.
COMMON = {"do", "name", "host", "quick", "directory"}


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code.

    The code of a campaign is 0 if it met its targets, and 1 if it did not or could not be run. With --quick the
    code is 1 if a request failed in a way that load does not excuse (`summaries.faults_of`).
    """
    options = _parser().parse_args(arguments)
    return options.do(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests", description="Load tests and their reports.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_campaigns(commands.add_parser("campaign", help="run a campaign and write its report"))
    shown = commands.add_parser("report", help="write the report of a recording that locust made with --record")
    shown.set_defaults(do=_report)
    shown.add_argument("recording", type=Path, metavar="DIRECTORY", help="the directory that locust got as --record")
    shown.add_argument(
        "--output", type=Path, metavar="DIRECTORY", help="directory of the report (default: that of the recording)"
    )
    compared = commands.add_parser("compare", help="compare two reports and list the changes beyond noise")
    compared.set_defaults(do=_compare)
    for name in ("before", "after"):
        compared.add_argument(name, type=Path, help=f"the report {name} the change: its directory or its findings.json")
    compared.add_argument(
        "--output", type=Path, metavar="DIRECTORY", help="directory of the page (default: that of the report after)"
    )
    return parser


def _add_campaigns(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, module in CAMPAIGNS.items():
        _add_common(
            own := names.add_parser(name, help=_question(module).replace("%", "%%"), description=module.__doc__)
        )
        if hasattr(module, "add_options"):
            module.add_options(own.add_argument_group(f"options of {name}"))


def _question(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().split("\n", 1)[0]


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(do=_campaign)
    described = "address of a remote deployment, such as https://cdb.example.org (default: a local service is started)"
    parser.add_argument("--host", type=_address, default="", metavar="URL", help=described)
    parser.add_argument("--quick", action="store_true", help="the smallest run that exercises everything; no verdicts")
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "load", help="directory of data and reports")


def _address(text: str) -> str:
    """The value of --host without a trailing slash; empty, which is the default, for a local service."""
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise argparse.ArgumentTypeError(f"must be an address such as https://cdb.example.org (got {text})")
    return text.rstrip("/")


def _own(options: argparse.Namespace) -> dict[str, str]:
    """The options that only this campaign has, as text by name; several values are separated by spaces."""
    given = {name: value for name, value in vars(options).items() if name not in COMMON and value is not None}
    return {name: " ".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in given.items()}


def _campaign(options: argparse.Namespace) -> int:
    prepare_process()
    # Requests to this machine must not go through a proxy that the environment names.
    os.environ["no_proxy"] = ",".join(filter(None, [os.environ.get("no_proxy"), "127.0.0.1"]))
    directory = options.directory.resolve()
    begin, when = time.monotonic(), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    output = directory / f"{options.name}-{when}"
    host = options.host
    stage = Stage(directory / "data", output=output, host=host, quick=options.quick, options=_own(options))
    module = CAMPAIGNS[options.name]
    try:
        if host:
            api.check_reachable(host)
        stage.data.mkdir(parents=True, exist_ok=True)
        output.mkdir(parents=True)
        with contextlib.nullcontext() if host else stage.running_database():
            facts = machine.facts(None if host else stage.database, _settings(options), generator="locust")
            findings, code = _findings(module, stage)
    except NeedsOwnServiceError:
        sys.stderr.write(f"load: {options.name} starts its own services and cannot be combined with --host\n")
        return 1
    except (ServiceError, ConfigurationError, OSError) as error:
        sys.stderr.write(f"load: {error}\n")
        return 1
    except KeyboardInterrupt:
        stage.say("interrupted")
        return INTERRUPTED
    stage.say("writing the report")
    path = campaign.write(output, options.name, f"Load test: {module.TITLE}", findings, facts)
    stage.say(f"Report: {path} ({time.monotonic() - begin:.0f} s)")
    print(f"{findings.summary}. {verdict(findings.passed, findings.too_small)}{os.linesep}{path}")
    return code


def _settings(options: argparse.Namespace) -> dict[str, str]:
    given = {"campaign": options.name, "deployment": options.host or "a local service"}
    if options.host:
        given["what runs there"] = _build(options.host)
    return given | {"quick": "yes" if options.quick else "no"} | _own(options)


def _build(host: str) -> str:
    """The versions that a remote deployment reports in /metrics."""
    found = [name for name in metrics.read(host) if name.startswith("cdb_build_info{")]
    return ", ".join(re.findall(r'\w+="[^"]*"', found[0])) if found else "unknown: its /metrics cannot be read"


def _findings(module: ModuleType, stage: Stage) -> tuple[Findings, int]:
    """The findings of a campaign and the exit code.

    If it is interrupted or fails, the findings list the complete runs.
    """
    try:
        findings = module.run(stage)
    except KeyboardInterrupt:
        stage.say("interrupted")
        return _incomplete(stage, "Interrupted"), INTERRUPTED
    except (ServiceError, OSError) as error:
        if not stage.runs:
            raise
        return _incomplete(stage, f"The campaign failed: {error}"), 1
    findings.question = findings.question or _question(module)
    if not stage.quick:
        return findings, 0 if findings.passed else 1
    findings.too_small = "--quick"
    if failed := sum(summaries.faults_of(run.recording) for run in findings.runs):
        stage.say(f"requests without the correct response: {failed:,} (see the failures in the report)")
    return findings, 1 if failed else 0


def _incomplete(stage: Stage, reason: str) -> Findings:
    return Findings(
        summary=f"{reason}. {len(stage.runs)} runs are complete; they are not evaluated",
        targets=[Target("the campaign is complete", None, 1, at_most=False)],
        runs=stage.runs,
    )


def _report(options: argparse.Namespace) -> int:
    directory = options.recording.resolve()
    try:
        recording = Recording.read(directory)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"load: {error}\n")
        return 1
    # All recordings have the same label, so that they can be compared.
    run = Run("recording", recording)
    of = summaries.of(run)
    share = "no requests" if of["ok_share"] is None else f"{of['ok_share'] * 100:.2f} % of {of['requests']:,} requests"
    findings = Findings(
        summary=f"{share} got the correct response, {number(of['mean_rate'])} requests per second",
        question="What was the outcome of the recorded requests?",
        runs=[run],
    )
    facts = machine.facts(None, {"recording": str(directory)}, generator="locust")
    print(campaign.write(options.output or directory, "recording", f"Load test: {directory.name}", findings, facts))
    return 0


def _compare(options: argparse.Namespace) -> int:
    try:
        path, text = compare.write(options.before, options.after, options.output)
    except (compare.IncomparableError, OSError) as error:
        sys.stderr.write(f"load: {error}\n")
        return 1
    print(f"{text}{os.linesep}{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
