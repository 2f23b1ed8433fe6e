"""The fields of locust's web UI and its command line that our users read."""

from locust import events
from locust.argument_parser import LocustArgumentParser

CLOSED, OPEN, POISSON = "after the last one", "at a constant rate", "at random"
PATTERNS = ("random", "first", "last", "fixed", "run-storm")


@events.init_command_line_parser.add_listener
def add_options(parser: LocustArgumentParser) -> None:
    """Each is shown in the UI unless it says otherwise."""
    add = parser.add_argument_group("conditions database").add_argument
    add("--global-tag", default="", metavar="NAME", help="ask about this global tag (empty: the scenario's name)")
    add("--pattern", choices=PATTERNS, default="random", help="the moments that jobs ask about")
    add(
        "--start-jobs",
        choices=(CLOSED, OPEN, POISSON),
        default=CLOSED,
        help="when a user starts its next job; the other two do not wait for answers, so that overload shows",
    )
    add("--jobs-per-second", type=float, default=1.0, help="of each user, where jobs start at a rate")
    add("--pause", type=float, default=0.0, metavar="SECONDS", help="after each job, where the next one waits for it")
    add("--jobs-per-user", type=int, default=0, metavar="N", help="a user goes after so many (0: when the test ends)")
    add(
        "--patience", type=float, default=60.0, metavar="SECONDS", help="to wait for an answer before it counts as none"
    )
    add(
        "--most-in-progress",
        type=int,
        default=20_000,
        metavar="N",
        help="jobs of a process at the same time; more are noted as not sent",
    )
    add("--record", default="", metavar="DIRECTORY", help="write down every request there, for a report (empty: not)")
