"""manage.py revoke"""

from typing import Any

from django.core.management.base import CommandParser

from cdb_rest.analysis.access_rules import described
from cdb_rest.management.access import actor
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.writes import access


class Command(ServiceCommand):
    help = "Delete an access rule. It takes effect within 2 seconds. `manage.py who-may` lists the rules with their numbers."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("rule", **AT_LEAST_ONE, metavar="RULE", help="number of the rule")

    def handle(self, *, rule: int, **options: Any) -> None:
        deleted = access.revoke(actor=actor("revoke"), rule_id=rule)
        number, who, role, tags, types = described(deleted)
        self.stdout.write(f"Rule {number} deleted: {who}: {role} for global tags {tags} and payload types {types}.")
