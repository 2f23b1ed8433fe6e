"""The fields of locust's web UI and its command line that our users and shapes read."""

from collections.abc import Callable
from typing import Any

from locust import events
from locust.argument_parser import LocustArgumentParser

from cdb_rest.domain.moment import Mode
from cdb_rest.management.quantities import IN_MILLISECONDS, IN_SECONDS, Duration
from cdb_rest.scenarios.definitions import SCENARIOS
from cdb_rest.scenarios.layouts import LAYOUTS
from loadtests.content.moments import PATTERNS
from loadtests.shapes.plans import PLANS

CLOSED, OPEN, POISSON = "after the last one", "at a constant rate", "at random"
UNKNOWN = "none"
# The arguments of options that take a pause between two requests.
PAUSE: dict[str, Any] = {"action": Duration, "unit": "s", "brief": True, "least": 0, "metavar": "TIME"}


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Each is shown in the UI unless it says otherwise, in this order; `Name (help)` is its label, which has to fit a line."""
    group = parser.add_argument_group(
        "conditions database", "A TIME is a plain number, or one with a unit: 500ms, 30s, 10min."
    )

    def add(*flags: str, shown: bool = True, **told: Any) -> None:
        # locust marks only what is added to the parser itself, and its --help has no heading for that.
        group.add_argument(*flags, **told).include_in_web_ui = shown

    _add_data(add)
    _add_jobs(add)
    _add_limits(add)
    _add_shapes(add)


def _add_data(add: Callable[..., None]) -> None:
    add(
        "--scenario",
        choices=(*SCENARIOS, UNKNOWN),
        default="tiny",
        help="what seed_scenario put into the tag; none: other data, of which less is checked",
    )
    add(
        "--layout", choices=tuple(LAYOUTS), default="realistic", help="as told to seed_scenario; make run has realistic"
    )
    add("--seed", type=int, default=1, help="as told to seed_scenario")
    add("--global-tag", default="", metavar="NAME", help="what readers ask about; empty: the tag named as the scenario")
    add(
        "--iov-mode",
        choices=[mode.value for mode in Mode],
        default=Mode.CONTINUOUS.value,
        help="CDB_IOV_MODE of the service: how it writes the ends of intervals",
    )
    add(
        "--pattern",
        choices=PATTERNS,
        default="random",
        help="moments that jobs ask about; run-storm: mostly the newest runs; fixed: see below",
    )
    add("--major", type=int, default=0, help="run or experiment of the fixed moment")
    add("--minor", type=int, default=0, help="time or run of the fixed moment")


def _add_jobs(add: Callable[..., None]) -> None:
    add(
        "--start-jobs",
        choices=(CLOSED, OPEN, POISSON),
        default=CLOSED,
        help="of each user; only the first waits for answers, and so hides overload",
    )
    add("--jobs-per-second", type=float, default=1.0, help="of each user, where jobs start at a rate or at random")
    add("--pause", **PAUSE, default=0.0, help="seconds after each job, where the next one waits for the last one")
    add("--jobs-per-user", type=int, default=0, metavar="N", help="a user goes after so many; 0: when the test ends")
    add("--start-together", action="store_true", help="users wait until all are there, then all begin at once")
    add(
        "--iterations",
        type=int,
        default=0,
        metavar="N",
        help="of all Indecisive users together, a tag each; 0: until the test ends",
    )
    add("--indecision", **PAUSE, default=1.0, help="seconds that Indecisive users keep a tag before they delete it")


def _add_limits(add: Callable[..., None]) -> None:
    add("--patience", **IN_SECONDS, brief=True, default=60.0, help="seconds to wait for an answer")
    add(
        "--most-in-progress",
        type=int,
        default=20_000,
        metavar="N",
        help="jobs at a time in each process; more count as not sent",
    )
    add(
        "--record",
        default="",
        metavar="DIRECTORY",
        help="directory to write each request to, for a report; empty: none",
    )


def _add_shapes(add: Callable[..., None]) -> None:
    add(
        "--shape",
        choices=tuple(PLANS),
        default=None,
        shown=False,
        help="how the number of users changes with time; --users is then the peak; without it: --users at --spawn-rate",
    )
    add(
        "--scale",
        type=float,
        default=1.0,
        shown=False,
        help="multiplies the peak that a shape has where --users is not given: 0.1 for a small machine",
    )
    add("--step-seconds", **IN_SECONDS, brief=True, default=30.0, help="shape Ramp: seconds of each of its ten steps")
    add(
        "--slow-milliseconds",
        **IN_MILLISECONDS,
        brief=True,
        default=1000.0,
        help="shape Ramp: ends when one in 20 answers takes longer",
    )
    add(
        "--failing-percent",
        type=float,
        default=1.0,
        metavar="PERCENT",
        help="shape Ramp: ends when more of the requests fail",
    )
