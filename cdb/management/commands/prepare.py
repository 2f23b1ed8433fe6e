"""manage.py prepare"""

import subprocess
import sys
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from cdb import database, env
from cdb.env import ROOT, ConfigurationError
from cdb.management.preparation import check_settings, prepare_database
from cdb.serving import layout, supervisor


class Command(BaseCommand):
    help = (
        "Prepare a start or a reload: load the code, check the settings, apply migrations, seed the scenario SCENARIO if there "
        "is no global tag, and write the configuration of nginx and supervisord. `make reload` and the units of systemd run it."
    )
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        try:
            _load_application()
            call_command("check")
            check_settings()
            prepare_database(self.stdout.write)
            layout.create()
            supervisor.write_configuration(database.embedded())
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Prepared; the configuration is in {layout.directory()}.")


def _load_application() -> None:
    """Import the application as its servers do, in a process of its own. Raises `CommandError` if that fails."""
    command = [sys.executable, "-c", "import cdb.wsgi"]
    loaded = subprocess.run(  # noqa: S603
        command, check=False, cwd=ROOT, env=env.child_environment(), capture_output=True, text=True
    )
    if loaded.returncode:
        raise CommandError((loaded.stderr.strip().splitlines() or ["the application can't be imported"])[-1])
