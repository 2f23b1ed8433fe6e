"""manage.py clear_iovs"""

from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from cdb_rest.management.access import by_account
from cdb_rest.management.command import ServiceCommand
from cdb_rest.parsing.parameters import parse_end_text, parse_moment_text
from cdb_rest.rules.access import Origin
from cdb_rest.rules.moment import Interval, Mode
from cdb_rest.rules.names import COMMENT_LENGTH
from cdb_rest.writes.clearing import clear_interval
from cdb_rest.writes.transactions import roll_back


class Command(ServiceCommand):
    help = (
        "Make no payload of a type valid in an interval of a global tag; outside of it nothing changes. IOVs in the interval are "
        "shortened, moved, split or removed from their list."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tag", metavar="TAG", help="name of the global tag")
        parser.add_argument("--payload-type", metavar="NAME", required=True, help="name of the payload type")
        parser.add_argument("--since", metavar="MAJOR,MINOR", required=True, help="the first moment without payload")
        parser.add_argument(
            "--until",
            metavar="MAJOR,MINOR",
            required=True,
            help="the end, as that of an IOV; 7,end for the end of major number 7, or open",
        )
        parser.add_argument("--reason", required=True, help="why, for the change log")
        parser.add_argument("--dry-run", action="store_true", help="report, and change nothing")

    def handle(
        self, *, tag: str, payload_type: str, since: str, until: str, reason: str, dry_run: bool, **options: Any
    ) -> None:
        if not 0 < len(reason) <= COMMENT_LENGTH:
            raise CommandError(f"--reason must have 1 to {COMMENT_LENGTH:,} characters (got {len(reason):,})")
        start, end = parse_moment_text("--since", since), parse_end_text("--until", until)
        service = partial(
            clear_interval,
            global_tag=tag,
            payload_type=payload_type,
            interval=Interval.from_wire(start, end, Mode(settings.CDB_IOV_MODE)),
            origin=Origin(by_account("clear_iovs"), reason),
        )
        found = roll_back(service) if dry_run else service()
        cuts = found.placement.cuts
        for cut in cuts:
            rest = " and ".join(map(str, cut.rest)) or "removed from the list"
            self.stdout.write(f"{cut.row.iov.payload_url}: {cut.was} -> {rest}")
        verb = "Would cut" if dry_run else "Cut"
        self.stdout.write(f"{verb} {len(cuts):,} IOVs of {payload_type} in global tag {tag}.")
