"""manage.py serve"""

import subprocess
import sys
import time
from typing import Any

from django.core.management.base import CommandParser

from cdb import env
from cdb.env import ROOT, ConfigurationError
from cdb.management.serving_command import ServingCommand, notify_service_manager
from cdb.serving import layout, supervisor
from cdb.serving.connection_limits import warnings_of_serve
from cdb.serving.program import PACKAGES, find

CHECK_INTERVAL_SECONDS = 1


class Command(ServingCommand):
    help = (
        "Serve as in production until Ctrl-C or SIGTERM, as `make serve` does: nginx on 127.0.0.1 and PORT, two instances of "
        "gunicorn, and PgBouncer in front of the database, which lookups do not use. `manage.py reload` loads new code and new "
        "settings without losing a request."
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
            self._print_warnings()
            supervisor.write_configuration()
            return
        with layout.locked():
            self._serve()

    def _serve(self) -> None:
        services = supervisor.Supervisor(self.print_line)
        checked = 0.0

        def check_database() -> None:
            nonlocal checked
            if time.monotonic() - checked > CHECK_INTERVAL_SECONDS:
                checked = time.monotonic()
                self.keep_database_running()

        try:
            self.prepare_database()
            self._print_warnings()
            supervisor.write_configuration()
            services.start()
            self.print_instructions(services.url)
            services.run(check_database, self._prepare_again)
        except (KeyboardInterrupt, SystemExit):
            self.print_line("Stopping.")
            notify_service_manager("STOPPING=1")
        finally:
            services.stop()

    def _print_warnings(self) -> None:
        for line in warnings_of_serve():
            self.print_line(line)

    def _prepare_again(self) -> None:
        """Repeat the preparation in a new process, which has the current code and settings.

        Raises `ConfigurationError` if it fails.
        """
        prepared = subprocess.run(  # noqa: S603
            [sys.executable, str(ROOT / "manage.py"), "serve", "--prepare"],
            check=False,
            cwd=ROOT,
            env=env.child_environment(),
            capture_output=True,
            text=True,
        )
        if prepared.returncode:
            raise ConfigurationError(" ".join(prepared.stderr.split()))
        for line in prepared.stdout.splitlines():
            if line.startswith("Warning:"):
                self.print_line(line)
