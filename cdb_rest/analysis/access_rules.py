"""Access rules for people: in words, those that give a role for a tag, and the names that patterns match now."""

import re
from collections.abc import Iterator, Sequence

from cdb_rest.models import AccessRule, GlobalTag, PayloadType, RuleKind
from cdb_rest.rules.access import ACTIONS, ANY, PLACEHOLDERS, All, Object, Permission, Role, matches, role_of
from cdb_rest.rules.status import Action, Status, role_for

# A `*` or `?` that repeats a letter, digit, `_` or `-`, as in online_*. In the syntax of a shell it stands for other text.
GLOB = re.compile(r"(?<=[\w-])[*?]", re.ASCII)
HEADER = ["rule", "who", "role", "global tags", "payload types"]
NAMES_SHOWN = 20
# The actions that change an existing tag, for each of the built-in statuses that permits some. Clones are other tags.
OF_A_TAG: dict[str, tuple[str, ...]] = {
    Status.UNLOCKED: ("insert", "lock", "revert", "delete", "freeze"),
    Status.LOCKED: ("insert", "unlock", "freeze"),
    Status.FROZEN: (),
}


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


def permission_of(rule: AccessRule) -> Permission:
    """The permission that a rule gives. A pattern with a placeholder for a claim's value counts as `ANY`."""
    tags, types = (
        ANY if any(placeholder in pattern for placeholder in PLACEHOLDERS) else pattern
        for pattern in (rule.tags, rule.types)
    )
    return Permission(role_of(rule.role), str(rule), tags, types)


def requirement(action: str, status: str | None) -> tuple[Role, Object]:
    """The role that one of `ACTIONS` needs on a tag with this status, and for which payload types: all, or None for any of them.

    `status` is None for a new tag, or for all tags.
    """
    if action == "insert":
        return (ACTIONS[action] if status is None else role_for(Action.ADD_IOV, status)), None
    return ACTIONS[action], All.ALL


def permitted(permission: Permission, tag: str, status: str) -> list[str]:
    """The actions that a permission allows on a tag with this status, for some payload types if it is an insertion."""
    # A tag with a status of the operator's own is protected like a locked one.
    actions = OF_A_TAG.get(status, OF_A_TAG[Status.LOCKED])
    needed = {action: requirement(action, status) for action in actions}
    return [action for action, (role, types) in needed.items() if permission.covers(role, tag, types)]


def matched_now(tags: str, types: str, labels: Sequence[str] = ("--tags", "--types")) -> Iterator[str]:
    """Lines that say which existing tags and types the patterns match, and warn about a pattern in the syntax of a shell.

    `labels` are the names of the two fields or options.
    """
    for option, kind, pattern, model in (
        (labels[0], "global tags", tags, GlobalTag),
        (labels[1], "payload types", types, PayloadType),
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
