"""manage.py detached_iovs"""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import table
from cdb_rest.management.quantities import Duration
from cdb_rest.models import PayloadIOV
from cdb_rest.writes.payload_iovs import delete_detached_iovs

HEADER = ("id", "payload", "created", "creator", "global tag that it left")


class Command(ServiceCommand):
    help = (
        "List the payload IOVs that are in no payload list, the oldest first, or delete those that were not changed for a time. "
        "The history of the lists in which they were stays."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--delete-older-than",
            action=Duration,
            needs_unit=True,
            unit="s",
            least=0,
            metavar="TIME",
            help="delete the IOVs that were not changed for this time, such as 30d",
        )

    def handle(self, *, delete_older_than: float | None, **options: Any) -> None:
        if delete_older_than is not None:
            count = delete_detached_iovs(before=timezone.now() - timedelta(seconds=delete_older_than))
            self.stdout.write(f"Deleted {count:,} payload IOVs that were in no payload list.")
            return
        found = PayloadIOV.objects.filter(payload_list=None).order_by("updated", "id")
        rows = [
            (str(iov.id), iov.payload_url, f"{iov.created:%Y-%m-%d %H:%M}", iov.creator or "-", iov.left_tag or "-")
            for iov in found[:1000]
        ]
        if rows:
            self.stdout.write(table(HEADER, rows))
        self.stdout.write(f"{found.count():,} payload IOVs are in no payload list.")
