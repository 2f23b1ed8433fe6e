"""manage.py compiler"""

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils.module_loading import import_string

from cdb_rest.compiled.maintenance import Maintenance
from cdb_rest.management.command import ServiceCommand
from cdb_rest.models import GlobalTagChange
from cdb_rest.notices.delivery import Deliverer, repeat
from cdb_rest.notices.mail import send_about_requests

logger = logging.getLogger(__name__)
INTERVAL_SECONDS = 0.5
# With the lowest one (19), a compilation on a busy machine took a quarter longer, although its share of the cores is limited.
LOW_PRIORITY = 5


def _notice_of(changes: Sequence[GlobalTagChange], position: int) -> bytes:
    # Imported by the first delivery: most services have no subscriptions, and the API needs time and memory.
    notice: bytes = import_string("cdb_rest.api.changes.notice_of")(changes, position)
    return notice


class Command(ServiceCommand):
    help = (
        "Work in the background until SIGTERM: send notices of changes to subscriptions, and keep the compiled payload lists of "
        "this host up to date: compile those of tags that are asked often, and delete those that are not needed. `make run` and "
        "`make serve` start it; elsewhere, one on each host."
    )

    def handle(self, **options: Any) -> None:
        # Before `nice`, which is for the threads that are started after it, too.
        for step in (Deliverer(_notice_of).step, send_about_requests):
            threading.Thread(target=repeat, args=[step], daemon=True).start()
        if not settings.CDB_COMPILED_BYTES:
            self.stdout.write("CDB_COMPILED_BYTES is 0: no list is compiled.")
            self.stdout.flush()
            while True:
                signal.pause()
        os.nice(LOW_PRIORITY)
        maintenance, reason = Maintenance(), ""
        while True:
            before, reason = reason, ""
            try:
                maintenance.step()
            except (OSError, DatabaseError) as error:
                reason = " ".join(str(error).split())
                if reason != before:
                    logger.warning("compiled lists cannot be kept up to date: %s", reason)
            time.sleep(INTERVAL_SECONDS)
