"""What the commands that serve have in common: the database made ready and looked after, and the lines they print."""

import contextlib
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from cdb import database, env
from cdb.env import ConfigurationError
from cdb_rest import named_sql
from cdb_rest.models import GlobalTag
from cdb_rest.scenarios.definitions import SCENARIOS

LOCK_SETUP = named_sql.load("lock_setup")


class ServingCommand(BaseCommand, ABC):
    """A command that serves until it is stopped; errors of configuration are one line."""

    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        scenario = env.read()["SCENARIO"]
        if scenario not in {*SCENARIOS, "none"}:
            raise CommandError(f"SCENARIO must be none or one of {', '.join(SCENARIOS)} (got {scenario})")
        try:
            self.serve(**options)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

    @abstractmethod
    def serve(self, **options: Any) -> None:
        """Serve until a signal raises an exception."""

    def prepare_database(self) -> None:
        """Bring the tables up to date, and seed the scenario of the settings if there is no global tag."""
        scenario = env.read()["SCENARIO"]
        embedded = database.embedded()
        self.say(f"PostgreSQL: {f'embedded, data in {embedded.directory}' if embedded else 'the one of DATABASE_URL'}")
        with _turn():
            call_command("migrate", verbosity=0, interactive=False)
            if scenario != "none" and not GlobalTag.objects.exists():
                call_command("seed_scenario", scenario, stdout=self.stdout)
        connection.close()

    def look_after_database(self) -> None:
        """Start the embedded server again if it has ended."""
        server = database.in_use()
        try:
            if server and server.revive():
                self.say("The embedded PostgreSQL had ended; it was started again.")
        except ConfigurationError as error:
            # It is tried again in a second.
            self.say(f"The embedded PostgreSQL has ended: {error}")

    def say_how(self, url: str) -> None:
        """Where it is, what to ask, how to stop."""
        tag = GlobalTag.objects.order_by("id").values_list("name", flat=True).first() or "NAME"
        connection.close()
        lookup = f"{url}/api/cdb_rest/payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0"
        self.say(f"Serving at {url} (API description: {url}/api/docs/)")
        self.say(f"Try:  curl '{lookup}'")
        self.say("Stop: Ctrl-C")
        tell_service_manager("READY=1")

    def say(self, line: str) -> None:
        """Print a line at once."""
        self.stdout.write(line)
        self.stdout.flush()


def tell_service_manager(state: str) -> None:
    """Tell the service manager that started us a state, such as READY=1; without one, do nothing.

    The protocol is that of systemd (sd_notify).
    """
    address = env.notify_socket()
    if not address:
        return
    # An address that begins with @ is in the abstract namespace.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        connection.sendto(state.encode(), name)


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
