"""The options of users and load shapes, on locust's command line and in its web UI."""

from typing import Any

from locust import events
from locust.argument_parser import LocustArgumentParser

from cdb_rest.management.quantities import IN_SECONDS, Duration
from cdb_rest.rules.moment import Mode
from cdb_rest.scenarios.definitions import SCENARIOS
from cdb_rest.scenarios.layouts import LAYOUTS
from loadtests.content.moments import PATTERNS
from loadtests.shapes import SHAPES

CLOSED, OPEN, POISSON = "after the last one", "at a constant rate", "at random"
UNKNOWN = "none"
# The argparse arguments of options whose value is a pause between two requests, a time or a number.
PAUSE: dict[str, Any] = {"action": Duration, "unit": "s", "brief": True, "least": 0, "metavar": "TIME"}
SECONDS = IN_SECONDS | {"brief": True}
COUNT: dict[str, Any] = {"type": int, "metavar": "N"}


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Add the options to locust's command line and web UI.

    The web UI shows them in this order, except those with `shown=False`. There, the label of an option is
    `Name (help)`, so the help text must be short enough for one line.
    """
    times = "A TIME is a plain number, or one with a unit: 500ms, 30s, 10min."
    group = parser.add_argument_group("conditions database", times)

    def add(flag: str, default: Any, text: str, *, shown: bool = True, **arguments: Any) -> None:
        # locust sets this attribute only for options of the parser itself. The options are in a group nevertheless,
        # because --help would show them without a heading otherwise.
        group.add_argument(flag, default=default, help=text, **arguments).include_in_web_ui = shown

    text = "scenario that seed_scenario wrote to the tag; none: other data, with fewer checks"
    add("--scenario", "tiny", text, choices=(*SCENARIOS, UNKNOWN))
    add("--layout", "realistic", "as for seed_scenario; make run uses realistic", choices=tuple(LAYOUTS))
    add("--seed", 1, "as for seed_scenario", type=int)
    add("--global-tag", "", "the tag that readers request; empty: the name of the scenario", metavar="NAME")
    modes = [mode.value for mode in Mode]
    add("--iov-mode", modes[0], "CDB_IOV_MODE of the service: the form of the ends of intervals", choices=modes)
    text = "moments of the lookups; run-storm: mostly the newest runs; fixed: see below"
    add("--pattern", "random", text, choices=PATTERNS)
    text = "user SingleRequest: lookup, globalTags, gtPayloadLists, or the path of another route of lookups"
    add("--route", "lookup", text, shown=False)
    add("--major", 0, "run or experiment of the fixed moment", type=int)
    add("--minor", 0, "time or run of the fixed moment", type=int)

    text = "when each user starts jobs; 'after the last one' hides overload"
    add("--start-jobs", CLOSED, text, choices=(CLOSED, OPEN, POISSON))
    add("--jobs-per-second", 1.0, "rate of each user, for jobs at a constant rate or at random", type=float)
    add("--pause", 0.0, "seconds between jobs, if they start after the last one", **PAUSE)
    add("--jobs-per-user", 0, "a user stops after N jobs; 0: when the test ends", **COUNT)
    add("--start-together", False, "users wait until all are spawned, then all begin at once", action="store_true")
    add("--iterations", 0, "tags of each Indecisive user; 0: until the test ends", **COUNT)
    add("--indecision", 1.0, "seconds after which Indecisive users delete a tag", **PAUSE)

    add("--patience", 60.0, "seconds to wait for a response", **SECONDS)
    add("--most-in-progress", 20_000, "concurrent jobs of each process; more count as not sent", **COUNT)
    add("--record", "", "directory of the recording, for a report; empty: no recording", metavar="DIRECTORY")

    text = "number of users over time, with --users as the peak; without it: --users at --spawn-rate"
    add("--shape", None, text, choices=tuple(SHAPES), shown=False)
