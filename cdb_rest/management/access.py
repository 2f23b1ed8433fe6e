"""Shared code of the commands for access rules and tokens: options and actor."""

import getpass
import os

from django.core.management.base import CommandParser

from cdb_rest.rules.access import ANY, MEANINGS, Role

PATTERN = "regular expression (RE2) that must match the whole name"


def add_role_options(parser: CommandParser) -> None:
    """Add the options `--role`, `--tags`, `--types` and `--comment`."""
    meanings = "; ".join(f"{role}: {meaning}" for role, meaning in MEANINGS.items())
    parser.add_argument(
        "--role",
        required=True,
        choices=[str(role) for role in Role],
        help=f"role; each includes those before it. {meanings}",
    )
    parser.add_argument("--tags", default=ANY, metavar="PATTERN", help=f"global tags: a {PATTERN} (default: all)")
    parser.add_argument("--types", default=ANY, metavar="PATTERN", help=f"payload types: a {PATTERN} (default: all)")
    parser.add_argument("--comment", default="", help="why, for the log of changes")


def actor(command: str) -> str:
    """The actor of a change by a command, for `AccessChange`: the command and the user who runs it."""
    return f"manage.py {by_account(command)}"


def by_account(command: str) -> str:
    """A command and the account that runs it, for the change log. An account without a name is shown by its number."""
    try:
        account = getpass.getuser()
    # Python 3.13 raises OSError.
    except (KeyError, OSError):
        account = f"user id {os.getuid()}"
    return f"{command} ({account})"
