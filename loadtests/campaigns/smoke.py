"""Whether all works: every kind of user for some seconds."""

from loadtests.campaigns.findings import Findings
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.recording.outcome import OK
from loadtests.reporting.result import Target

TITLE = "Smoke"
SECONDS = 20


def run(stage: Stage) -> Findings:
    """A mix of all users on `tiny`."""
    with stage.serving(scenarios=("tiny",)):
        load = Load(
            users={"ReconstructionJob": 1}, count=10, seconds=SECONDS, options={"pause": 0.1, "global-tag": "tiny"}
        )
        run = stage.load("all users", load)
    requests = run.recording.requests
    good = float((requests.outcomes == OK).mean()) * 100
    return Findings(
        summary=f"{good:.2f} % of {len(requests):,} requests were answered rightly",
        question="Does every kind of client get right answers?",
        targets=[Target("right answers", good, 100, at_most=False, unit="%")],
        runs=[run],
        figures={"right answers: %": [good]},
    )
