"""Does every kind of client get correct responses?

The load has every kind of user for some seconds. Those that write use their own tags and payload types, and
delete them.
"""

import argparse
import math

from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording.outcome import GENERATOR_ERROR
from loadtests.reporting.result import Findings, Target, all_correct

SECONDS, QUICK_SECONDS = 20, 5
USERS = {"ReconstructionJob": 8, "KeepAliveJob": 3, "BelleJob": 3, "Misbehaving": 2, "Expert": 2, "Indecisive": 2}


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the tag that readers request."""
    options.add(parser, "--scenario", "scenario in the tag; none: other data", "tiny")
    options.add_content(parser)


def run(stage: Stage) -> Findings:
    """Run a mix of all users."""
    scenario, seconds = stage.options.scenario, stage.size(SECONDS, QUICK_SECONDS)
    settings = {"pause": 0.1, "scenario": scenario, **options.content(stage.options)}
    with stage.serving(scenarios=(scenario,)):
        run = stage.load("all users", Load(USERS, sum(USERS.values()), seconds, options=settings))
    requests = run.recording.requests
    correct = all_correct([run])
    # Including whole jobs, because a user may fail outside of a request.
    broken = int((run.recording.outcomes == GENERATOR_ERROR).sum())
    kinds = {str(name) for name in requests.users}
    # Rounded down, so that 100 % means all.
    share = math.floor(correct.value * 100) / 100
    return Findings(
        summary=f"{share:.2f} % of {len(requests):,} requests of {len(kinds)} kinds of users got the correct response",
        targets=[
            correct,
            Target("failures of the generator itself", broken, 0, at_most=True),
            Target("kinds of users", len(kinds), len(USERS), at_most=False, unit=""),
        ],
        runs=[run],
        figures={"correct responses: %": [correct.value]},
    )
