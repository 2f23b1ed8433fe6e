"""The base class of the commands `run` and `serve`, which prepares the database and prints messages."""

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
from cdb_rest.identity import issuers
from cdb_rest.models import AccessRule, GlobalTag
from cdb_rest.scenarios.definitions import SCENARIOS

LOCK_SETUP = named_sql.load("lock_setup")


class ServingCommand(BaseCommand, ABC):
    """A command that serves until it is stopped. It reports configuration errors in one line.

    `opens_writes` says whether it accepts writes from all clients if CDB_OPEN_WRITES is not set.
    """

    requires_system_checks = []
    opens_writes = False

    def handle(self, **options: Any) -> None:
        scenario = env.read()["SCENARIO"]
        if scenario not in {*SCENARIOS, "none"}:
            raise CommandError(f"SCENARIO must be none or one of {', '.join(SCENARIOS)} (got {scenario})")
        issuers.configured()
        try:
            self.serve(**options)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

    @abstractmethod
    def serve(self, **options: Any) -> None:
        """Serve until a signal raises `KeyboardInterrupt` or `SystemExit`; then stop what was started, and return.

        Raises `ConfigurationError` for configuration errors, which `handle` reports.
        """

    def prepare_database(self) -> None:
        """Apply migrations, and seed the configured scenario if there is no global tag.

        Waits while another service prepares the same database. Raises `CommandError` if it can't be migrated.
        """
        scenario = env.read()["SCENARIO"]
        embedded = database.embedded()
        self.print_line(
            f"PostgreSQL: {f'embedded, data in {embedded.directory}' if embedded else 'the server of DATABASE_URL'}"
        )
        with _setup_lock():
            call_command("migrate", verbosity=0, interactive=False)
            if scenario != "none" and not GlobalTag.objects.exists():
                call_command("seed_scenario", scenario, stdout=self.stdout)
        connection.close()

    def keep_database_running(self) -> None:
        """Restart the embedded server if it has ended. Prints a `ConfigurationError` and does not raise it.

        Does nothing with DATABASE_URL.
        """
        server = database.in_use()
        try:
            if server and server.restart_if_ended():
                self.print_line("The embedded PostgreSQL had ended; it was restarted.")
        except ConfigurationError as error:
            # The next call, a second later, tries again.
            self.print_line(f"The embedded PostgreSQL has ended: {error}")

    def print_instructions(self, url: str) -> None:
        """Print the URL, an example of a lookup, who may write, and how to stop.

        Then notify the service manager that the service is ready.
        """
        access = self._access()
        tag = GlobalTag.objects.order_by("id").values_list("name", flat=True).first() or "NAME"
        connection.close()
        lookup = f"{url}/api/cdb_rest/payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0"
        self.print_line(f"Serving at {url} (API description: {url}/api/docs/)")
        self.print_line(f"Try:  curl '{lookup}'")
        self.print_line(access)
        self.print_line("Stop: Ctrl-C")
        notify_service_manager("READY=1")

    def _access(self) -> str:
        """Who may write, in one line."""
        is_open = env.read()["CDB_OPEN_WRITES"]
        if self.opens_writes if is_open is None else is_open:
            return "Writes are open to all clients that reach this address (CDB_OPEN_WRITES)."
        rules = AccessRule.objects.count()
        if rules:
            return f"Writes need a permission; access rules: {rules} (list them: manage.py who-may)."
        return (
            "Writes are closed. To open them: manage.py token create --name NAME --role ROLE, "
            "or manage.py grant network ADDRESS --identity NAME --role ROLE"
        )

    def print_line(self, line: str) -> None:
        """Print a line and flush the output."""
        self.stdout.write(line)
        self.stdout.flush()


def notify_service_manager(state: str) -> None:
    """Send a state, such as READY=1, to the service manager that started this process; does nothing without one.

    The protocol is systemd's sd_notify. Errors are ignored.
    """
    address = env.notify_socket()
    if not address:
        return
    # An address that begins with @ is in the abstract namespace.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        connection.sendto(state.encode(), name)


@contextlib.contextmanager
def _setup_lock() -> Iterator[None]:
    """Hold the advisory lock that serialises migration and seeding among services that start on the same database.

    The lock belongs to a transaction on a separate connection.
    """
    lock = connection.copy()
    try:
        lock.set_autocommit(False)
        with lock.cursor() as cursor:
            cursor.execute(LOCK_SETUP)
        yield
        lock.rollback()
    finally:
        lock.close()
