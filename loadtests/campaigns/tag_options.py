"""The options about the content of the global tag, which several campaigns have."""

import argparse
from collections.abc import Mapping

from cdb_rest.domain.moment import Mode
from cdb_rest.scenarios.layouts import LAYOUTS


def add_content(parser: argparse._ArgumentGroup) -> None:
    """Add the options that describe how a remote deployment was seeded; the defaults describe a local service."""
    add = parser.add_argument
    add("--global-tag", default="", metavar="NAME", help="name of the tag (default: the name of the scenario)")
    add(
        "--layout",
        default="random",
        choices=list(LAYOUTS),
        help="layout of its rows, as for seed_scenario (default: random)",
    )
    add("--seed", default=1, type=int, help="seed of its rows, as for seed_scenario (default: 1)")
    modes = [mode.value for mode in Mode]
    add("--iov-mode", default=modes[0], choices=modes, help=f"CDB_IOV_MODE of the service (default: {modes[0]})")


def content(options: Mapping[str, str]) -> dict[str, str]:
    """The locust options about the content of the tag, from the options of a stage."""
    defaults = {"global_tag": "", "layout": "random", "seed": "1", "iov_mode": Mode.CONTINUOUS.value}
    return {name.replace("_", "-"): options.get(name, default) for name, default in defaults.items()}
