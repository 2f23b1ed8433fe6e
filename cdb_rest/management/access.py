"""Shared code of the commands for access rules and tokens: options, actor, and the text of a rule."""

import getpass
import os
import re
from collections.abc import Iterator

from django.core.management.base import CommandParser

from cdb_rest.management.output import NAMES_SHOWN
from cdb_rest.models import AccessRule, GlobalTag, PayloadType, RuleKind
from cdb_rest.rules.access import ANY, MEANINGS, Role, matches
from cdb_rest.writes.access import PLACEHOLDERS

# A `*` or `?` that repeats a letter, digit, `_` or `-`, as in online_*. In the syntax of a shell it stands for other text.
GLOB = re.compile(r"(?<=[\w-])[*?]", re.ASCII)
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


def described(rule: AccessRule) -> list[str]:
    """A rule as a row of a table with the columns of `HEADER`."""
    who = {
        RuleKind.CLAIM: f"tokens of {rule.issuer} with {rule.claim} {rule.subject}",
        RuleKind.TOKEN: f"token {rule.subject}",
        RuleKind.USER: f"user {rule.subject}",
        RuleKind.GROUP: f"members of {rule.subject}",
        RuleKind.NETWORK: f"{rule.identity}: clients in {rule.subject} without a token",
    }[RuleKind(rule.kind)]
    return [str(rule.id), who, rule.role, rule.tags, rule.types]


HEADER = ["rule", "who", "role", "global tags", "payload types"]


def matched_now(tags: str, types: str) -> Iterator[str]:
    """Lines that say which existing tags and types the patterns match, and warn about a pattern in the syntax of a shell."""
    for option, kind, pattern, model in (
        ("--tags", "global tags", tags, GlobalTag),
        ("--types", "payload types", types, PayloadType),
    ):
        if any(placeholder in pattern for placeholder in PLACEHOLDERS):
            yield f"{option} {pattern}: which {kind} it matches depends on the claim."
            continue
        if GLOB.search(pattern):
            meant = GLOB.sub(lambda found: f".{found[0].replace('?', '')}", pattern)
            yield (
                f"Warning: {option} is a regular expression, in which * and ? repeat the character before them "
                f"(got {pattern}; perhaps {meant} is meant)."
            )
        names = list(model.objects.order_by("name").values_list("name", flat=True))
        found = [name for name in names if matches(pattern, name)]
        shown = ", ".join(found[:NAMES_SHOWN]) + (", …" if len(found) > NAMES_SHOWN else "")
        yield f"{option} {pattern} matches {len(found)} of {len(names)} {kind} now{f': {shown}' if found else ''}."
