"""manage.py who-may"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from cdb_rest.analysis.access_rules import HEADER, described, permission_of, requirement
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import table
from cdb_rest.models import AccessRule, GlobalTag, PayloadType
from cdb_rest.rules.access import ACTIONS, All, Object, Role, needs
from cdb_rest.rules.errors import GlobalTagNotFoundError, PayloadTypeNotFoundError

# Actions for which the tag need not exist.
ON_NEW_TAGS = {"create", "clone"}


class Command(ServiceCommand):
    help = (
        "List the access rules that permit an action on a global tag; without arguments, all rules. Lists superusers, too, and "
        "says whether all clients may do it. For insert, rules for some payload types are listed unless --type names one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", nargs="?", choices=list(ACTIONS), help="the action")
        parser.add_argument(
            "tag",
            nargs="?",
            metavar="TAG",
            help="name of the global tag, for clone of the new one (default: all global tags)",
        )
        parser.add_argument(
            "--type",
            metavar="TYPE",
            help="name of the payload type (default: all payload types; for insert, any of them)",
        )

    def handle(self, *, action: str | None, tag: str | None, type: str | None, **options: Any) -> None:
        rules = list(AccessRule.objects.order_by("id"))
        if action is not None:
            role, name, payload_type = _required(action, tag, type)
            self.stdout.write(f"To {action} needs {needs(role, name, payload_type)}. Rules that give it:")
            rules = [rule for rule in rules if permission_of(rule).covers(role, name, payload_type)]
        self.stdout.write(table(HEADER, [described(rule) for rule in rules]) if rules else "There are no rules.")
        superusers = User.objects.filter(is_superuser=True, is_active=True).order_by("username")
        if names := ", ".join(user.username for user in superusers):
            self.stdout.write(f"Superusers of the admin, who may do everything: {names}")
        if line := _open_to_all(action):
            self.stdout.write(line)


def _required(action: str, tag: str | None, payload_type: str | None) -> tuple[Role, Object, Object]:
    """The role that an action needs, for which tag and type. For an insertion into some list, the type is None.

    Raises `GlobalTagNotFoundError` or `PayloadTypeNotFoundError`.
    """
    status = GlobalTag.objects.filter(name=tag).values_list("status__name", flat=True).first()
    if tag is not None and status is None and action not in ON_NEW_TAGS:
        raise GlobalTagNotFoundError(tag)
    if payload_type is not None and not PayloadType.objects.filter(name=payload_type).exists():
        raise PayloadTypeNotFoundError(payload_type)
    role, types = requirement(action, status)
    return role, All.ALL if tag is None else tag, types if payload_type is None else payload_type


def _open_to_all(action: str | None) -> str:
    """Whether all clients may do the action, in one line; empty if only rules permit it."""
    if action == "read":
        return "Reads are open to all clients (CDB_ANONYMOUS_READS)." if settings.CDB_ANONYMOUS_READS else ""
    if settings.CDB_OPEN_WRITES:
        return "Writes are open to all clients (CDB_OPEN_WRITES), so they need no rule."
    if settings.CDB_OPEN_WRITES is None:
        return "Writes of make run are open to all clients, because CDB_OPEN_WRITES is not set; otherwise they need a rule."
    return ""
