"""manage.py revoke"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb_rest.analysis.access_rules import described
from cdb_rest.management.access import actor
from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.rules.errors import CdbError
from cdb_rest.writes import access


class Command(BaseCommand):
    help = "Delete an access rule. It takes effect within 2 seconds. `manage.py who-may` lists the rules with their numbers."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("rule", **AT_LEAST_ONE, metavar="RULE", help="number of the rule")

    def handle(self, *, rule: int, **options: Any) -> None:
        try:
            deleted = access.revoke(actor=actor("revoke"), rule_id=rule)
        except CdbError as error:
            raise CommandError(str(error)) from error
        number, who, role, tags, types = described(deleted)
        self.stdout.write(f"Rule {number} deleted: {who}: {role} for global tags {tags} and payload types {types}.")
