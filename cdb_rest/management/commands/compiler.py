"""manage.py compiler"""

import logging
import os
import signal
import threading
import time
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from cdb_rest.api.changes import notice_of
from cdb_rest.compiled.maintenance import Maintenance
from cdb_rest.management.command import ServiceCommand
from cdb_rest.notices.delivery import Deliverer, repeat
from cdb_rest.notices.mail import send_about_requests

logger = logging.getLogger(__name__)
INTERVAL_SECONDS = 0.5
# With the lowest one (19), a compilation on a busy machine took a quarter longer, although its share of the cores is limited.
LOW_PRIORITY = 5


class Command(ServiceCommand):
    help = (
        "Work in the background until SIGTERM: send notices of changes to subscriptions, and keep the compiled payload lists of "
        "this host up to date: compile those of tags that are asked often, and delete those that are not needed. `make run` and "
        "`make serve` start it; elsewhere, one on each host."
    )

    def handle(self, **options: Any) -> None:
        # Before `nice`, which is for the threads that are started after it, too.
        for step in (Deliverer(notice_of).step, send_about_requests):
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
