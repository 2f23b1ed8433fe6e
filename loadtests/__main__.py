"""The command line of `python -m loadtests`, which `make load` runs."""

import argparse
import contextlib
import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cdb.env import ROOT, ConfigurationError
from loadtests import client, metrics
from loadtests.campaigns import closed, growth, hammer, peak, saturation, smoke, storm_cache
from loadtests.campaigns.options import Default
from loadtests.campaigns.stage import Stage
from loadtests.recording.reading import Recording
from loadtests.reporting import campaign, compare, machine, summaries
from loadtests.reporting.figures import number
from loadtests.reporting.report import verdict
from loadtests.reporting.result import Findings, Run, Target
from loadtests.service import INTERRUPTED, ServiceError, prepare_process


class Campaign(NamedTuple):
    """A campaign: the title of its report, what it does, its options and its function.

    The first line of `description` is the question of the campaign.
    """

    title: str
    description: str
    add_options: Callable[[argparse._ArgumentGroup], None]
    run: Callable[[Stage], Findings]

    @property
    def question(self) -> str:
        """The question of the campaign."""
        return self.description.split("\n", 1)[0]

    @classmethod
    def of(cls, title: str, module: Any, run: Any = None, add_options: Any = None) -> "Campaign":
        """A campaign that is a module with `run` and `add_options`, or functions of a module."""
        return cls(title, inspect.getdoc(run or module) or "", add_options or module.add_options, run or module.run)


CAMPAIGNS = {
    "smoke": Campaign.of("Smoke", smoke),
    "scenarios": Campaign.of("Scenarios and patterns", closed, closed.scenarios, closed.scenarios_options),
    "threads": Campaign.of("Threads", closed, closed.threads, closed.threads_options),
    "workers": Campaign.of("Processes and threads", closed, closed.workers, closed.threads_options),
    "types-iovs": Campaign.of("Payload types and IOVs", closed, closed.types_iovs, closed.types_iovs_options),
    "endpoints": Campaign.of("Strategies", closed, closed.endpoints, closed.endpoints_options),
    "growth": Campaign.of("Growth, block by block", growth),
    "hammer": Campaign.of("Hammer", hammer),
    "saturation": Campaign.of("Saturation", saturation),
    "peak": Campaign.of("Peak", peak),
    "storm-cache": Campaign.of("Storm and cache", storm_cache),
}
# Names of the options that every campaign has; all others belong to one campaign.
COMMON = {"do", "name", "host", "quick", "directory"}


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code.

    The code of a campaign is 0 if it met its targets, and 1 if it did not or could not be run. With --quick the
    code is 1 if a request failed in a way that load does not excuse (`summaries.faults_of`).
    """
    options = parsed(arguments)
    try:
        return options.do(options)
    except (ServiceError, ConfigurationError, compare.IncomparableError, OSError) as error:
        sys.stderr.write(f"load: {error}\n")
        return 1


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line; `own` are those of the campaign."""
    parser = argparse.ArgumentParser(prog="python -m loadtests", description="Load tests and their reports.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    names = commands.add_parser("campaign", help="run a campaign and write its report").add_subparsers(
        dest="name", required=True, metavar="NAME"
    )
    for name, one in CAMPAIGNS.items():
        own = names.add_parser(name, help=one.question.replace("%", "%%"), description=one.description)
        _add_common(own)
        one.add_options(own.add_argument_group(f"options of {name}"))
    shown = commands.add_parser("report", help="write the report of a recording that locust made with --record")
    shown.set_defaults(do=_report)
    shown.add_argument("recording", type=Path, metavar="DIRECTORY", help="the directory that locust got as --record")
    compared = commands.add_parser("compare", help="compare two reports and list the changes beyond noise")
    compared.set_defaults(do=_compare)
    for name in ("before", "after"):
        compared.add_argument(name, type=Path, help=f"the report {name} the change: its directory or its findings.json")
    for command, default in ((shown, "that of the recording"), (compared, "that of the report after")):
        text = f"directory of the report (default: {default})"
        command.add_argument("--output", type=Path, metavar="DIRECTORY", help=text)
    return parser.parse_args(arguments)


def own_options(options: argparse.Namespace) -> argparse.Namespace:
    """The options that only this campaign has, with the defaults of a run with or without --quick."""
    own = {name: value for name, value in vars(options).items() if name not in COMMON}
    chosen = {name: value[options.quick] for name, value in own.items() if isinstance(value, Default)}
    return argparse.Namespace(**own | chosen)


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


def _campaign(options: argparse.Namespace) -> int:
    prepare_process()
    # Requests to this machine must not go through a proxy that the environment names.
    os.environ["no_proxy"] = ",".join(filter(None, [os.environ.get("no_proxy"), "127.0.0.1"]))
    directory, host = options.directory.resolve(), options.host
    begin, when = time.monotonic(), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    output = directory / f"{options.name}-{when}"
    own = own_options(options)
    stage = Stage(directory / "data", output=output, host=host, quick=options.quick, options=own)
    one = CAMPAIGNS[options.name]
    try:
        if host:
            client.check_reachable(host)
        stage.data.mkdir(parents=True, exist_ok=True)
        output.mkdir(parents=True)
        with contextlib.nullcontext() if host else stage.running_database():
            facts = machine.facts(None if host else stage.database, _settings(options, own), generator="locust")
            findings, code = _findings(one, stage)
            findings.question = findings.question or one.question
    except KeyboardInterrupt:
        stage.say("interrupted")
        return INTERRUPTED
    stage.say("writing the report")
    path = campaign.write(output, options.name, f"Load test: {one.title}", findings, facts)
    stage.say(f"Report: {path} ({time.monotonic() - begin:.0f} s)")
    print(f"{findings.summary}. {verdict(findings.passed, findings.too_small)}{os.linesep}{path}")
    return code


def _settings(options: argparse.Namespace, own: argparse.Namespace) -> dict[str, str]:
    """The facts about a run: the campaign, the deployment with the versions in its /metrics, and the options."""
    settings = {"campaign": options.name, "deployment": options.host or "a local service"}
    if options.host:
        found = [name for name in metrics.read(options.host) if name.startswith("cdb_build_info{")]
        versions = ", ".join(re.findall(r'\w+="[^"]*"', found[0])) if found else ""
        settings["what runs there"] = versions or "unknown: its /metrics cannot be read"
    settings["quick"] = "yes" if options.quick else "no"
    for name, value in vars(own).items():
        settings[name] = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return settings


def _findings(one: Campaign, stage: Stage) -> tuple[Findings, int]:
    """The findings of a campaign and the exit code.

    If it is interrupted or fails, the findings list the complete runs.
    """
    try:
        findings = one.run(stage)
    except KeyboardInterrupt:
        stage.say("interrupted")
        return _incomplete(stage, "Interrupted"), INTERRUPTED
    except (ServiceError, OSError) as error:
        if not stage.runs:
            raise
        return _incomplete(stage, f"The campaign failed: {error}"), 1
    if not stage.quick:
        return findings, 0 if findings.passed else 1
    findings.too_small = "--quick"
    if failed := sum(summaries.faults_of(run.recording) for run in findings.runs):
        stage.say(f"requests without the correct response: {failed:,} (see the failures in the report)")
    return findings, 1 if failed else 0


def _incomplete(stage: Stage, reason: str) -> Findings:
    return Findings(
        summary=f"{reason}. Complete runs, which are not evaluated: {len(stage.runs)}",
        targets=[Target("the campaign is complete", None, 1, at_most=False)],
        runs=stage.runs,
    )


def _report(options: argparse.Namespace) -> int:
    directory = options.recording.resolve()
    # All recordings have the same label, so that they can be compared.
    try:
        run = Run("recording", Recording.read(directory))
    except ValueError as error:
        raise ServiceError(str(error)) from error
    of = summaries.summary_of(run.recording)
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
    path, text = compare.write(options.before, options.after, options.output)
    print(f"{text}{os.linesep}{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
