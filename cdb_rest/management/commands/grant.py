"""manage.py grant"""

from typing import Any

from django.core.management.base import CommandParser

from cdb_rest.access.issuers import check_name
from cdb_rest.analysis.access_rules import described, matched_now
from cdb_rest.management.access import actor, add_role_options
from cdb_rest.management.command import ServiceCommand
from cdb_rest.models import RuleKind
from cdb_rest.writes import access


class Command(ServiceCommand):
    help = (
        "Add an access rule: give a role to tokens, users, groups or networks. It takes effect within 2 seconds. Examples: "
        "grant network 10.1.0.0/16 --identity counting-house --role contributor --tags 'online_.*'; "
        "grant user alice --role publisher; "
        "grant claim /experiment/calibration --issuer experiment --claim wlcg.groups --role manager."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=RuleKind.values, help="what SUBJECT is")
        parser.add_argument(
            "subject",
            metavar="SUBJECT",
            help="network: its address, such as 10.1.0.0/16; claim: a regular expression for the claim's value; otherwise "
            "one for the name. It must match the whole text.",
        )
        add_role_options(parser)
        parser.add_argument("--issuer", default="", help="for claim: name of the issuer in CDB_ISSUERS_FILE")
        parser.add_argument("--claim", default="", help="for claim: the claim, such as wlcg.groups or scope")
        parser.add_argument(
            "--identity", default="", metavar="NAME", help="for network: name of its clients in the change log"
        )

    def handle(self, **options: Any) -> None:
        fields = ("kind", "subject", "role", "tags", "types", "comment", "issuer", "claim", "identity")
        if options["issuer"]:
            check_name(options["issuer"])
        rule, is_new = access.grant(actor=actor("grant"), **{field: options[field] for field in fields})
        number, who, role, tags, types = described(rule)
        self.stdout.write(
            f"Rule {number} {'added' if is_new else 'exists already'}: {who}: {role} for global tags {tags} "
            f"and payload types {types}."
        )
        for line in matched_now(tags, types):
            self.stdout.write(line)
