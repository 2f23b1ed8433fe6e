"""Does every kind of client get right answers?

Every kind of user for some seconds, those that write included: in tags and payload types of their own, which they delete.
"""

import argparse
import math

from loadtests.campaigns import asked
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording.outcome import OK, RIG_ERROR
from loadtests.reporting.findings import Findings
from loadtests.reporting.result import Target

TITLE = "Smoke"
SECONDS, QUICK_SECONDS = 20, 5
USERS = {"ReconstructionJob": 8, "KeepAliveJob": 3, "BelleJob": 3, "Misbehaving": 2}
WRITERS = {"Expert": 2, "Indecisive": 2}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """What readers ask about."""
    parser.add_argument("--scenario", default="tiny", help="what is in the tag; none: other data (default: tiny)")
    asked.add_content(parser)


def run(stage: Stage) -> Findings:
    """A mix of all users."""
    scenario = stage.options.get("scenario", "tiny")
    with stage.serving(scenarios=(scenario,)):
        load = Load(
            users=USERS, count=20, seconds=QUICK_SECONDS if stage.quick else SECONDS, fixed=WRITERS,
            options={"pause": 0.1, "scenario": scenario, **asked.content(stage.options)},
        )  # fmt: skip
        run = stage.load("all users", load)
    requests = run.recording.requests
    good = float((requests.outcomes == OK).mean()) * 100
    # Those of whole jobs, too: what a user makes of an answer is no request.
    broken = int((run.recording.outcomes == RIG_ERROR).sum())
    kinds = {str(name) for name in requests.users}
    # Rounded down, because only all are 100 %.
    share = math.floor(good * 100) / 100
    return Findings(
        summary=f"{share:.2f} % of {len(requests):,} requests of {len(kinds)} kinds of users were answered rightly",
        question="Does every kind of client get right answers?",
        targets=[
            Target("right answers", good, 100, at_most=False, unit="%"),
            Target("failures of the generator itself", broken, 0, at_most=True),
            Target("kinds of users", len(kinds), len(USERS) + len(WRITERS), at_most=False, unit=""),
        ],
        runs=[run],
        figures={"right answers: %": [good]},
    )
