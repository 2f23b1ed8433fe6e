"""Commands, writes of the service, and SQL of other programs, for tests of commands."""

from io import StringIO

from django.core.management import CommandError, call_command
from django.db import connection

from cdb_rest.writes import insertion


def attempt(command, *arguments):
    """Whether a command succeeded, and what it printed, with its error."""
    out = StringIO()
    try:
        call_command(command, *arguments, stdout=out)
    except CommandError as error:
        return False, out.getvalue() + str(error)
    return True, out.getvalue()


def sql(statement, *parameters):
    """A statement of another program, which changes rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        assert cursor.rowcount > 0


def insert(tag, since, until=None, kind="Gain"):
    """Insert a payload from one major number to another, or to the end."""
    row = {"global_tag": tag, "payload_type": kind, "payload_url": f"{tag} {kind} {since} to {until}"}
    row |= {"major_iov": since, "minor_iov": 0, "since_only": False}
    end = {} if until is None else {"major_iov_end": until, "minor_iov_end": 0}
    insertion.insert_payloads(rows=[row | end])
