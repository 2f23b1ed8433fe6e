"""Errors of commands: one line, whichever layer raised them."""

import psycopg2
import pytest
from django.core import management

from cdb.management import command_line
from cdb_rest.rules.errors import ConcurrentChangeError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConcurrentChangeError("Try\nagain."), "cdb: Try again."),
        (psycopg2.errors.DiskFull("no space\nleft"), "cdb: database error: no space left (--traceback"),
        (psycopg2.errors.UndefinedTable("no table"), "cdb: database error: its tables do not exist"),
    ],
)
def test_an_error_is_one_line(monkeypatch, capsys, error, line):
    def fail(arguments):
        raise error

    monkeypatch.setattr(management, "execute_from_command_line", fail)
    assert command_line.main(["manage.py", "help"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(line) and printed.count("\n") == 1
