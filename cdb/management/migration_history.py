"""A check before migrations that rejects databases of other applications, and recognises those of newer versions of cdb."""

from collections.abc import Iterable

from django.apps import apps
from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from cdb import database

APP = "cdb_rest"
NAMES_SHOWN = 3


def check_history(connection: BaseDatabaseWrapper) -> list[str]:
    """The migrations of a newer version that the database has; none if this version may migrate it.

    Migrations only add to the schema since version 1.0, so this version can use the database of a newer one, which has all
    migrations of this version and later ones.

    Raises `CommandError`, with a message of one line, if other migrations of `cdb_rest` are recorded that this version does not
    know, or if none is recorded but tables or views have the names of its models. Databases of earlier versions and tables
    with other names are accepted. nopayloaddb has the same app label and the same table names. This function only reads the
    database.
    """
    with connection.cursor() as cursor:
        # Read before the migration records: a concurrent migration commits each table together with its record.
        tables = {model._meta.db_table for model in apps.get_app_config(APP).get_models()}
        tables.intersection_update(connection.introspection.table_names(cursor, include_views=True))
    applied = {name for app, name in MigrationRecorder(connection).applied_migrations() if app == APP}
    own, replaced = _known_migrations()
    unknown = applied - own - replaced
    if unknown and own <= applied and min(unknown) > max(own):
        return sorted(unknown)
    if unknown:
        raise CommandError(
            f"the database belongs to another application, such as nopayloaddb, or to a development version of cdb: this "
            f"version has no migration {_format_names(unknown)}. Nothing was changed. {_advice()}"
        )
    if tables and not applied:
        raise CommandError(
            f"the database has tables with names that cdb needs ({_format_names(tables)}), but no migration of cdb created them. "
            f"Nothing was changed. {_advice()}"
        )
    return []


def describe_newer(migrations: Iterable[str]) -> str:
    """One line about a database that has these migrations of a newer version."""
    return f"a newer version of cdb has migrated the database ({_format_names(migrations)})"


def _known_migrations() -> tuple[set[str], set[str]]:
    """The names of this version's migrations, and of the migrations that they replace."""
    migrations = {
        name: migration
        for (app, name), migration in MigrationLoader(None, ignore_no_migrations=True).disk_migrations.items()
        if app == APP
    }
    replaced = {name for migration in migrations.values() for app, name in migration.replaces if app == APP}
    return set(migrations), replaced


def _format_names(names: Iterable[str]) -> str:
    first, more = sorted(names)[:NAMES_SHOWN], len(set(names)) - NAMES_SHOWN
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _advice() -> str:
    server = database.embedded()
    if server:
        advice = f"Remove {server.directory} to start with a new database."
    else:
        advice = "Set DATABASE_URL to an empty database or to one of cdb."
    return f"{advice} manage.py adopt copies a database of nopayloaddb (docs/adopt.md)."
