"""manage.py who-may"""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser

from cdb_rest.management.access import HEADER, described
from cdb_rest.management.output import table
from cdb_rest.models import AccessRule, GlobalTag
from cdb_rest.rules.access import ACTIONS, ANY, All, Object, Permission, needs, role_of
from cdb_rest.rules.status import Action, role_for
from cdb_rest.writes.access import PLACEHOLDERS


class Command(BaseCommand):
    help = "List the access rules that permit an action on a global tag; without arguments, all rules. Lists superusers, too."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", nargs="?", choices=list(ACTIONS), help="the action")
        parser.add_argument("tag", nargs="?", metavar="TAG", help="name of the global tag (default: all global tags)")
        parser.add_argument("--type", metavar="TYPE", help="name of the payload type (default: all payload types)")

    def handle(self, *, action: str | None, tag: str | None, type: str | None, **options: Any) -> None:
        rules = list(AccessRule.objects.order_by("id"))
        if action is not None:
            role = ACTIONS[action]
            status = GlobalTag.objects.filter(name=tag).values_list("status__name", flat=True).first()
            if action == "insert" and status is not None:
                role = role_for(Action.ADD_IOV, status)
            name: Object = All.ALL if tag is None else tag
            payload_type: Object = All.ALL if type is None else type
            self.stdout.write(f"To {action} needs {needs(role, name, payload_type)}. Rules that give it:")
            rules = [rule for rule in rules if _permission(rule).covers(role, name, payload_type)]
        self.stdout.write(table(HEADER, [described(rule) for rule in rules]) if rules else "There are no rules.")
        superusers = User.objects.filter(is_superuser=True, is_active=True).order_by("username")
        if names := ", ".join(user.username for user in superusers):
            self.stdout.write(f"Superusers of the admin, who may do everything: {names}")


def _permission(rule: AccessRule) -> Permission:
    """The permission that a rule gives. A pattern with a placeholder for a claim's value counts as `ANY`."""
    tags, types = (
        ANY if any(placeholder in pattern for placeholder in PLACEHOLDERS) else pattern
        for pattern in (rule.tags, rule.types)
    )
    return Permission(role_of(rule.role), str(rule), tags, types)
