"""manage.py run"""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from cdb import database, env
from cdb.env import ConfigurationError
from cdb.server import Server
from cdb_rest import named_sql
from cdb_rest.models import GlobalTag
from cdb_rest.scenarios.definitions import SCENARIOS

LOCK_SETUP = named_sql.load("lock_setup")


class Command(BaseCommand):
    help = (
        "Serve: bring the database up to date, seed the scenario of the variable SCENARIO if there is no global tag yet, "
        "and run gunicorn on 127.0.0.1 and PORT until Ctrl-C or SIGTERM. This is what `make run` does."
    )
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        scenario = env.read()["SCENARIO"]
        if scenario not in {*SCENARIOS, "none"}:
            raise CommandError(f"SCENARIO must be none or one of {', '.join(SCENARIOS)}, not {scenario}")
        server = Server()
        try:
            server.check_port_free()
            self._prepare_database(scenario)
            try:
                server.start()
                self._say_how(server.url)
                code = server.wait(self._look_after_database)
            except (KeyboardInterrupt, SystemExit):
                self._say("Stopping.")
                return
            finally:
                server.stop()
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        raise CommandError(f"gunicorn ended by itself with code {code}")

    def _prepare_database(self, scenario: str) -> None:
        embedded = database.embedded()
        self._say(f"PostgreSQL: {f'embedded, data in {embedded.directory}' if embedded else 'the one of DATABASE_URL'}")
        with _turn():
            call_command("migrate", verbosity=0, interactive=False)
            if scenario != "none" and not GlobalTag.objects.exists():
                call_command("seed_scenario", scenario, stdout=self.stdout)
        connection.close()

    def _look_after_database(self) -> None:
        server = database.in_use()
        try:
            if server and server.revive():
                self._say("The embedded PostgreSQL had ended; it was started again.")
        except ConfigurationError as error:
            # It is tried again in a second.
            self._say(f"The embedded PostgreSQL has ended: {error}")

    def _say_how(self, url: str) -> None:
        tag = GlobalTag.objects.order_by("id").values_list("name", flat=True).first() or "NAME"
        connection.close()
        lookup = f"{url}/api/cdb_rest/payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0"
        self._say(f"Serving at {url} (API description: {url}/api/docs/)")
        self._say(f"Try:  curl '{lookup}'")
        self._say("Stop: Ctrl-C")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Take turns with others that start on the same database: a lock that lasts as long as a transaction of its own."""
    lock = connection.copy()
    try:
        lock.set_autocommit(False)
        with lock.cursor() as cursor:
            cursor.execute(LOCK_SETUP)
        yield
        lock.rollback()
    finally:
        lock.close()
