"""manage.py serve"""

import subprocess
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cdb import database, env
from cdb.env import ROOT, ConfigurationError
from cdb.management.preparation import check_settings, instructions, prepare_database
from cdb.processes import machine
from cdb.processes.parent import end_with_parent
from cdb.serving import layout, supervisor


class Command(BaseCommand):
    help = (
        "Serve as in production until Ctrl-C or SIGTERM, as `make serve` does: supervisord runs nginx on 127.0.0.1 and PORT, "
        "granian for lookups, gunicorn for all other requests, the compiler and, without DATABASE_URL, PostgreSQL. "
        "`make reload` loads new code and new settings."
    )
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        check_settings()
        port = env.read()["PORT"]
        try:
            supervisor.nginx_program()
            machine.check_port_free(port, "make serve")
            layout.lock()
            prepare_database(self._say)
            lines = instructions(opens_writes=False)
            server = database.in_use()
            supervisor.write_configuration(server)
            if server:
                # supervisord starts it again, and keeps the lock on its data.
                server.stop()
                server.keep_lock()
            _print_when_ready(port, lines)
            supervisor.replace_process()
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _print_when_ready(port: int, lines: list[str]) -> None:
    """Start a process that prints the lines when the service is ready.

    They are its standard input, not arguments, because they contain the name of a tag.
    """
    command = [sys.executable, "-m", "cdb.serving.ready", str(port)]
    # There is one thread.
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True, preexec_fn=end_with_parent)  # noqa: S603
    if process.stdin:
        process.stdin.write("\n".join(lines))
        process.stdin.close()
