"""Commands, writes of the service, and SQL of other programs, for tests of commands."""

from contextlib import suppress
from io import StringIO

from django.core.management import CommandError, call_command
from django.db import connection, transaction

from cdb_rest.history.contents import find_past, iovs_of, past_lists
from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, RevisionPrunedError
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


def known(tag="tag"):
    """The rows of all revisions of a tag that can be asked for."""
    found = {}
    for revision in GlobalTagChange.objects.filter(global_tag=tag).values_list("revision", flat=True):
        with suppress(RevisionPrunedError, GlobalTagNotFoundError), transaction.atomic():
            rows = iovs_of(past_lists(find_past(tag, AsOf(revision=revision))))
            found[revision] = [(row["comb_iov"], row["payload_url"]) for row in rows]
    return found


def insert(tag, since, until=None, kind="Gain"):
    """Insert a payload from one major number to another, or to the end."""
    row = {"global_tag": tag, "payload_type": kind, "payload_url": f"{tag} {kind} {since} to {until}"}
    row |= {"major_iov": since, "minor_iov": 0, "since_only": False}
    end = {} if until is None else {"major_iov_end": until, "minor_iov_end": 0}
    insertion.insert_payloads(rows=[row | end])
