"""The command line options of campaigns: defaults that depend on --quick, and the content of the global tag."""

import argparse
from typing import Any, NamedTuple

from cdb_rest.domain.moment import Mode
from cdb_rest.scenarios.layouts import LAYOUTS


class Default(NamedTuple):
    """The default of an option, without and with --quick."""

    full: Any
    quick: Any


def add(parser: argparse._ArgumentGroup, flag: str, text: str, full: Any, quick: Any = None, **arguments: Any) -> None:
    """Add an option with its default; `quick` is the default with --quick, if it is another one.

    `text` is the help without the default, `arguments` are those of argparse.
    """
    default = Default(full, full if quick is None else quick)
    shown = "; ".join([_shown(full), *([] if quick is None else [f"{_shown(quick)} with --quick"])])
    parser.add_argument(flag, default=default, help=f"{text} (default: {shown})", **arguments)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_shown, value))
    return f"{value:,g}" if isinstance(value, int | float) and value < 1e6 else str(value)


def add_content(parser: argparse._ArgumentGroup) -> None:
    """Add the options that describe how a remote deployment was seeded; the defaults describe a local service."""
    parser.add_argument(
        "--global-tag", default="", metavar="NAME", help="name of the tag (default: the name of the scenario)"
    )
    add(parser, "--layout", "layout of its rows, as for seed_scenario", "random", choices=list(LAYOUTS))
    add(parser, "--seed", "seed of its rows, as for seed_scenario", 1, type=int)
    modes = [mode.value for mode in Mode]
    add(parser, "--iov-mode", "CDB_IOV_MODE of the service", modes[0], choices=modes)


def content(options: argparse.Namespace) -> dict[str, Any]:
    """The locust options about the content of the tag."""
    return {name: getattr(options, name.replace("-", "_")) for name in ("global-tag", "layout", "seed", "iov-mode")}
