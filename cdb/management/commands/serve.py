"""manage.py serve"""

import subprocess
import sys
import time
from typing import Any

from django.core.management.base import CommandParser

from cdb import env
from cdb.env import ROOT, ConfigurationError
from cdb.management.serving_command import ServingCommand, tell_service_manager
from cdb.serving import layout, supervisor
from cdb.serving.connection_limits import warnings_of_serve
from cdb.serving.program import PACKAGES, find

LOOK_AFTER_SECONDS = 1


class Command(ServingCommand):
    help = (
        "Serve as in production until Ctrl-C or SIGTERM, as `make serve` does: nginx on 127.0.0.1 and PORT, two instances of "
        "gunicorn, and PgBouncer in front of the database. `manage.py reload` loads new code and new settings without losing "
        "a request."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--prepare",
            action="store_true",
            help="only apply migrations and write the configuration of nginx and PgBouncer, as a reload does",
        )

    def serve(self, **options: Any) -> None:
        for name in PACKAGES:
            find(name)
        if options["prepare"]:
            self.prepare_database()
            self._say_warnings()
            supervisor.write_configuration()
            return
        with layout.taken():
            self._serve()

    def _serve(self) -> None:
        running = supervisor.Supervisor(self.say)
        looked = 0.0

        def look_after() -> None:
            nonlocal looked
            if time.monotonic() - looked > LOOK_AFTER_SECONDS:
                looked = time.monotonic()
                self.look_after_database()

        try:
            self.prepare_database()
            self._say_warnings()
            supervisor.write_configuration()
            running.start()
            self.say_how(running.url)
            running.run(look_after, self._prepare_anew)
        except (KeyboardInterrupt, SystemExit):
            self.say("Stopping.")
            tell_service_manager("STOPPING=1")
        finally:
            running.stop()

    def _say_warnings(self) -> None:
        for line in warnings_of_serve():
            self.say(line)

    def _prepare_anew(self) -> None:
        """Do by the code and the settings of now what was done at the start."""
        prepared = subprocess.run(  # noqa: S603
            [sys.executable, str(ROOT / "manage.py"), "serve", "--prepare"],
            check=False,
            cwd=ROOT,
            env=env.for_children(),
            capture_output=True,
            text=True,
        )
        if prepared.returncode:
            raise ConfigurationError(" ".join(prepared.stderr.split()))
        for line in prepared.stdout.splitlines():
            if line.startswith("Warning:"):
                self.say(line)
