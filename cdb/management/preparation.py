"""The preparation of the database by `run`, `serve` and `prepare`, and their message when the service is ready."""

import contextlib
from collections.abc import Callable, Iterator
from urllib.parse import quote

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from cdb import database, env
from cdb_rest import named_sql
from cdb_rest.access import issuers
from cdb_rest.connections.durability import standbys_without_slot
from cdb_rest.models import AccessRule, GlobalTag
from cdb_rest.scenarios.definitions import SCENARIOS

LOCK_SETUP = named_sql.load("lock_setup")


def check_settings() -> None:
    """Raise `CommandError` or `ImproperlyConfigured` if SCENARIO or CDB_ISSUERS_FILE is not valid."""
    scenario = env.read()["SCENARIO"]
    if scenario not in {*SCENARIOS, "none"}:
        raise CommandError(f"SCENARIO must be none or one of {', '.join(SCENARIOS)} (got {scenario})")
    issuers.configured()


def prepare_database(say: Callable[[str], None]) -> None:
    """Apply migrations, and seed the configured scenario if there is no global tag. `say` gets a line for each step.

    Waits while another service prepares the same database. Raises `CommandError` if it can't be migrated.
    """
    scenario = env.read()["SCENARIO"]
    embedded = database.embedded()
    for line in env.unknown():
        say(f"Warning: {line}")
    say(f"PostgreSQL: {f'embedded, data in {embedded.directory}' if embedded else 'the server of DATABASE_URL'}")
    with _setup_lock():
        call_command("migrate", verbosity=0, interactive=False)
        if scenario != "none" and not GlobalTag.objects.exists():
            call_command("seed_scenario", scenario)
    if number := standbys_without_slot():
        say(
            f"Warning: standbys without a replication slot: {number}. A failover to one can lose frozen tags that caches keep."
        )
    connection.close()


def instructions(*, opens_writes: bool) -> list[str]:
    """The lines to print when the service is ready: its URL, a lookup, who may write, how to stop.

    `opens_writes` says whether the service accepts writes from all clients if CDB_OPEN_WRITES is not set.
    """
    url = f"http://127.0.0.1:{env.read()['PORT']}"
    tag = quote(GlobalTag.objects.order_by("id").values_list("name", flat=True).first() or "NAME", safe="")
    lines = [
        f"Serving at {url} (API description: {url}/api/docs/)",
        f"Try:  curl '{url}/api/cdb_rest/payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0'",
        _access(opens_writes),
        "Stop: Ctrl-C",
    ]
    connection.close()
    return lines


def _access(opens_writes: bool) -> str:
    """Who may write, in one line."""
    is_open = env.read()["CDB_OPEN_WRITES"]
    if opens_writes if is_open is None else is_open:
        return "Writes are open to all clients that reach this address (CDB_OPEN_WRITES)."
    if rules := AccessRule.objects.count():
        return f"Writes need a permission; access rules: {rules} (list them: manage.py who-may)."
    return (
        "Writes are closed. To open them: manage.py token create --name NAME --role ROLE, "
        "or manage.py grant network ADDRESS --identity NAME --role ROLE"
    )


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
