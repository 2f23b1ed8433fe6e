"""The command line of `python -m loadtests`, which `make load` runs: campaigns and their reports."""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pandas

from cdb.env import ROOT, ConfigurationError
from loadtests import campaign, client, recording, report
from loadtests.campaign import Campaign, Result
from loadtests.harness import Harness
from loadtests.service import INTERRUPTED, ServiceError, manage, prepare_process, running

# From then on, the generator may be what limits the rate.
LATE_MILLISECONDS = 250


def main(arguments: Sequence[str]) -> int:
    """Run a campaign and write its report; 1 if a step failed or could not be run."""
    options = _parser().parse_args(arguments)
    prepare_process()
    # Requests to this machine must not go through a proxy that the environment names.
    os.environ["no_proxy"] = ",".join(filter(None, [os.environ.get("no_proxy"), "127.0.0.1"]))
    try:
        if options.list:
            for file in sorted(campaign.DIRECTORY.glob("*.toml")):
                print(f"{file.stem:20} {campaign.load(file).question}")
            return 0
        return _run(campaign.load(campaign.find(options.campaign), quick=options.quick), options)
    except (ServiceError, ConfigurationError, OSError) as error:
        sys.stderr.write(f"load: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("load: interrupted\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests", description=__doc__)
    parser.add_argument(
        "campaign", nargs="?", default="smoke", help="name of a campaign or path of a TOML file (smoke)"
    )
    parser.add_argument("--list", action="store_true", help="list the campaigns with their questions")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; only contents are judged")
    text = "address of a deployment, such as https://cdb.example.org (default: a local service is started)"
    parser.add_argument("--host", type=_address, default="", metavar="URL", help=text)
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "load", help="directory of data and reports")
    return parser


def _address(text: str) -> str:
    """The value of --host without a trailing slash; empty, which is the default, for a local service."""
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise argparse.ArgumentTypeError(f"must be an address such as https://cdb.example.org (got {text})")
    return text.rstrip("/")


def _run(chosen: Campaign, options: argparse.Namespace) -> int:
    begin, harness = time.monotonic(), Harness(options.directory.resolve() / "data")
    output = options.directory.resolve() / f"{Path(options.campaign).stem}-{campaign.started_at()}"
    results: list[Result] = []
    interrupted = False
    with contextlib.ExitStack() as stack:
        if options.host:
            client.check_reachable(options.host)
            service = None
        else:
            stack.enter_context(harness.running_database())
            harness.seed(*chosen.scenarios)
            for command in chosen.prepare:
                manage(harness.settings, *command)
            settings = {"command": chosen.command, **chosen.settings}
            service = stack.enter_context(running(harness.settings, **settings))
        url = options.host or service.host
        try:
            for result in campaign.run(chosen, harness, url, service, output):
                results.append(result)
        except KeyboardInterrupt:
            interrupted = True
    if not results:
        return INTERRUPTED
    code = _write(chosen, options, results, output)
    harness.say(f"{time.monotonic() - begin:.0f} s")
    return INTERRUPTED if interrupted else code


def _write(chosen: Campaign, options: argparse.Namespace, results: Sequence[Result], output: Path) -> int:
    # With --quick, bounds say nothing; wrong responses and errors do.
    failed = [
        result
        for result in results
        if (campaign.failures(result.step, result.figures) if not options.quick else _wrong(result))
    ]
    figures = pandas.DataFrame([result.figures | {"failed": "; ".join(result.failures)} for result in results])
    plots = {}
    if chosen.plot and len(figures) > 1:
        plots[f"{chosen.plot['y']} by {chosen.plot['x']}"] = report.lines(figures, **chosen.plot)
    for result in results[: report.MOST_TIMELINES]:
        plots[f"{result.figures['step']}, repetition {result.figures['repetition']}"] = report.timeline(
            result.requests, result.signals
        )
    passed = f"{len(results) - len(failed)} of {len(results)} steps passed"
    size = ", with --quick: only contents were judged" if options.quick else ""
    examples = [_example(result) for result in failed]
    late = figures.loc[figures["late"] > LATE_MILLISECONDS, "step"]
    warning = [f"The generator was late, so its own speed limits these steps: {', '.join(late)}."] if len(late) else []
    path = report.write(
        output,
        f"Load test: {chosen.title}",
        figures,
        verdict=f"{chosen.question} {passed}{size}.",
        is_good=not failed,
        texts=[*warning, *examples],
        plots=plots,
        settings={"campaign": options.campaign, "deployment": options.host or "a local service"},
    )
    print(f"{passed}{size}.\n{path}")
    return 1 if failed else 0


def _wrong(result: Result) -> bool:
    return any(result.figures.get(outcome) for outcome in recording.FAULTS)


def _example(result: Result) -> str:
    """Why a step failed, with the first response that was not as expected."""
    failed = result.requests[result.requests["detail"].str.len() > 0]
    first = f" First: {failed['name'].iloc[0]}: {failed['detail'].iloc[0]}" if len(failed) else ""
    return f"{result.figures['step']}: {'; '.join(result.failures)}.{first}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
