"""Numbers, sizes and times on command lines, and the one line that an error of a command is."""

import argparse
from datetime import UTC, datetime, timedelta

import psycopg2
import pytest
from django.core import management
from hypothesis import given
from hypothesis import strategies as st

from cdb.management import command_line
from cdb_rest.management.quantities import BYTES, SECONDS, Duration, Number, Size, Time
from cdb_rest.rules.errors import ConcurrentChangeError

UNITS = {Size: BYTES, Duration: SECONDS}
amounts = st.floats(0, 1e9) | st.integers(0, 10**9)
quantities = st.sampled_from(
    [
        (kind, unit, own)
        for kind in UNITS
        for unit in UNITS[kind]
        for own in ("s", "ms", "min", "MiB", "GiB")
        if own in UNITS[kind]
    ]
)


def read(words, *, nargs=None, **declared):
    parser = argparse.ArgumentParser(prog="cdb", exit_on_error=False)
    parser.add_argument("--short", "--amount", nargs=nargs, **declared)
    return parser.parse_args(["--amount", *words]).short


def refusal(text, **declared):
    with pytest.raises(argparse.ArgumentError) as caught:
        read([text], **declared)
    return str(caught.value)


@given(quantities, amounts, st.sampled_from(["", " "]), st.sampled_from([str, str.lower, str.upper]))
def test_a_unit_multiplies_and_its_case_and_the_space_do_not_matter(quantity, amount, space, spelt):
    kind, unit, own = quantity
    found = read([f"{amount!r}{space}{spelt(unit)}"], action=kind, unit=own, help="it")
    assert found == pytest.approx(amount * UNITS[kind][unit] / UNITS[kind][own])


@pytest.mark.parametrize(
    "text",
    ["", " ", "s", "1x", "1 2", "1,5s", "1_000", "0x10", "nan", "inf", "1e999", "1e308d", "8G", "5m", "\u0663s", "1s1"],
)
def test_an_invalid_duration_is_rejected(text):
    wanted = "a number of seconds, or a number with one of the units ms, s, min, h, d"
    assert refusal(text, action=Duration, unit="s", help="it") == f"--amount must be {wanted} (got {text})"


@given(st.integers(-(10**6), 10**6), st.integers(-1000, 1000), st.integers(0, 1000))
def test_the_error_names_the_option_the_bound_and_what_was_given(number, least, width):
    declared = {"action": Number, "kind": int, "least": least, "most": least + width}
    if least <= number <= least + width:
        assert read([f" {number}"], **declared) == number
    else:
        bound = f"at least {least:,}" if number < least else f"at most {least + width:,}"
        assert refusal(f" {number}", **declared) == f"--amount must be {bound} (got  {number})"


@given(st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)), st.integers(-23, 23))
def test_a_time_is_read_with_its_time_zone_or_in_utc(time, hours):
    local = (time + timedelta(hours=hours)).replace(tzinfo=None)
    assert read([f"{local.isoformat()}{hours:+03}:00"], action=Time) == time
    assert read([time.replace(tzinfo=None).isoformat(" ")], action=Time) == time
    assert read([time.date().isoformat()], action=Time) == time.replace(hour=0, minute=0, second=0, microsecond=0)
    assert read([time.isoformat()], action=Time).tzinfo is not None


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "3d"])
def test_an_invalid_time_is_rejected(text):
    wanted = "a date or time such as 2026-11-24 or 2026-11-24T12:00:00Z"
    assert refusal(text, action=Time) == f"--amount must be {wanted} (got {text})"


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
