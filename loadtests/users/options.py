"""The options of users and load shapes, on locust's command line and in its web UI."""

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
# The argparse arguments of options whose value is a pause between two requests.
PAUSE: dict[str, Any] = {"action": Duration, "unit": "s", "brief": True, "least": 0, "metavar": "TIME"}


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Add the options to locust's command line and web UI.

    The web UI shows them in this order, except those with `shown=False`. There, the label of an option is
    `Name (help)`, so the help text must be short enough for one line.
    """
    group = parser.add_argument_group(
        "conditions database", "A TIME is a plain number, or one with a unit: 500ms, 30s, 10min."
    )

    def add(*flags: str, shown: bool = True, **arguments: Any) -> None:
        # locust sets this attribute only for options of the parser itself. The options are in a group nevertheless,
        # because --help would show them without a heading otherwise.
        group.add_argument(*flags, **arguments).include_in_web_ui = shown

    _add_data(add)
    _add_jobs(add)
    _add_limits(add)
    _add_shapes(add)


def _add_data(add: Callable[..., None]) -> None:
    add(
        "--scenario",
        choices=(*SCENARIOS, UNKNOWN),
        default="tiny",
        help="scenario that seed_scenario wrote to the tag; none: other data, with fewer checks",
    )
    add("--layout", choices=tuple(LAYOUTS), default="realistic", help="as for seed_scenario; make run uses realistic")
    add("--seed", type=int, default=1, help="as for seed_scenario")
    add(
        "--global-tag", default="", metavar="NAME", help="the tag that readers request; empty: the name of the scenario"
    )
    add(
        "--iov-mode",
        choices=[mode.value for mode in Mode],
        default=Mode.CONTINUOUS.value,
        help="CDB_IOV_MODE of the service: the form of the ends of intervals",
    )
    add(
        "--pattern",
        choices=PATTERNS,
        default="random",
        help="moments of the lookups; run-storm: mostly the newest runs; fixed: see below",
    )
    add("--major", type=int, default=0, help="run or experiment of the fixed moment")
    add("--minor", type=int, default=0, help="time or run of the fixed moment")


def _add_jobs(add: Callable[..., None]) -> None:
    add(
        "--start-jobs",
        choices=(CLOSED, OPEN, POISSON),
        default=CLOSED,
        help="when each user starts jobs; 'after the last one' hides overload",
    )
    add(
        "--jobs-per-second", type=float, default=1.0, help="rate of each user, for jobs at a constant rate or at random"
    )
    add("--pause", **PAUSE, default=0.0, help="seconds between jobs, if they start after the last one")
    add("--jobs-per-user", type=int, default=0, metavar="N", help="a user stops after N jobs; 0: when the test ends")
    add("--start-together", action="store_true", help="users wait until all are spawned, then all begin at once")
    add(
        "--iterations",
        type=int,
        default=0,
        metavar="N",
        help="total of the tags of all Indecisive users; 0: until the test ends",
    )
    add("--indecision", **PAUSE, default=1.0, help="seconds after which Indecisive users delete a tag")


def _add_limits(add: Callable[..., None]) -> None:
    add("--patience", **IN_SECONDS, brief=True, default=60.0, help="seconds to wait for a response")
    add(
        "--most-in-progress",
        type=int,
        default=20_000,
        metavar="N",
        help="concurrent jobs of each process; more count as not sent",
    )
    add(
        "--record",
        default="",
        metavar="DIRECTORY",
        help="directory of the recording, for a report; empty: no recording",
    )


def _add_shapes(add: Callable[..., None]) -> None:
    add(
        "--shape",
        choices=tuple(PLANS),
        default=None,
        shown=False,
        help="number of users over time, with --users as the peak; without it: --users at --spawn-rate",
    )
    add(
        "--scale",
        type=float,
        default=1.0,
        shown=False,
        help="factor for the peak of the shape, if --users is not given: 0.1 for a small machine",
    )
    add("--step-seconds", **IN_SECONDS, brief=True, default=30.0, help="shape Ramp: seconds of each of the ten steps")
    add(
        "--slow-milliseconds",
        **IN_MILLISECONDS,
        brief=True,
        default=1000.0,
        help="shape Ramp: ends when one in 20 responses takes longer",
    )
    add(
        "--failing-percent",
        type=float,
        default=1.0,
        metavar="PERCENT",
        help="shape Ramp: ends when a larger percentage of requests fails",
    )
