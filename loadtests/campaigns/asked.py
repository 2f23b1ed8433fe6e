"""Options that several campaigns have: what is in the tag of a deployment."""

import argparse
from collections.abc import Mapping

from cdb_rest.domain.moment import Mode
from cdb_rest.scenarios.layouts import LAYOUTS


def add_content(parser: argparse._ArgumentGroup) -> None:
    """How the rows of a scenario came to be where a deployment has them; our own service has what the defaults say."""
    add = parser.add_argument
    add("--global-tag", default="", metavar="NAME", help="the tag, if it is not named as the scenario")
    add(
        "--layout",
        default="random",
        choices=list(LAYOUTS),
        help="of its rows, as told to seed_scenario (default: random)",
    )
    add("--seed", default=1, type=int, help="as told to seed_scenario (default: 1)")
    modes = [mode.value for mode in Mode]
    add("--iov-mode", default=modes[0], choices=modes, help=f"CDB_IOV_MODE of the service (default: {modes[0]})")


def content(options: Mapping[str, str]) -> dict[str, str]:
    """What locust is told of it, from the options of a stage."""
    defaults = {"global_tag": "", "layout": "random", "seed": "1", "iov_mode": Mode.CONTINUOUS.value}
    return {name.replace("_", "-"): options.get(name, default) for name, default in defaults.items()}
