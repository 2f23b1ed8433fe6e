"""manage.py check_names"""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from cdb_rest.management.command import ServiceCommand
from cdb_rest.models import GlobalTag, GlobalTagStatus, PayloadType
from cdb_rest.rules.names import name_fault

KINDS: dict[str, type[GlobalTag | PayloadType | GlobalTagStatus]] = {
    "global tag": GlobalTag,
    "payload type": PayloadType,
    "status": GlobalTagStatus,
}


class Command(ServiceCommand):
    help = (
        "List the names of existing global tags, payload types and statuses that new ones could not have, for example in an "
        "adopted database. They can be read, cloned and deleted. Exits with 1 if there are any."
    )

    def handle(self, **options: Any) -> None:
        count = 0
        for kind, model in KINDS.items():
            for name in model.objects.order_by("id").values_list("name", flat=True).iterator():
                if fault := name_fault(name, settings.CDB_NAME_PATTERN):
                    count += 1
                    self.stdout.write(f"{kind} {name!r}: {fault}")
        took = self.took()
        if count:
            raise CommandError(f"names that new objects could not have: {count:,} ({took})")
        self.stdout.write(f"All names follow the rule for new names ({took}).")
