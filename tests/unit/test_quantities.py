"""Numbers, sizes and times on command lines: their laws, and the form of their errors."""

import argparse
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdb_rest.management.quantities import BYTES, SECONDS, Duration, Number, Size, Time

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


@given(quantities, amounts)
def test_a_plain_number_is_in_the_unit_of_the_option_exactly(quantity, amount):
    kind, _, own = quantity
    assert read([repr(amount)], action=kind, unit=own, help="it") == amount


@given(st.integers(0, 10**9), st.sampled_from(list(BYTES)))
def test_a_whole_number_stays_one(amount, unit):
    found = read([f"{amount}{unit}"], action=Size, unit="MiB", kind=int, help="it")
    assert isinstance(found, int) and abs(found - amount * BYTES[unit] / 2**20) <= 0.5
    assert read([str(amount)], action=Size, unit="MiB", kind=int, help="it") == amount


def test_the_units_are_those_of_their_names():
    assert read(["8GiB"], action=Size, unit="MiB", help="it") == 8192
    assert read(["500MB"], action=Size, unit="GiB", help="it") == 500e6 / 2**30
    assert read(["10min"], action=Duration, unit="s", help="it") == 600
    assert read(["1.5h"], action=Duration, unit="min", help="it") == 90
    assert read(["1", "2s", "3ms"], action=Duration, unit="ms", help="it", nargs="+") == [1, 2000, 3]


@given(st.text(max_size=12).filter(lambda text: not text.startswith("-") and text.strip()))
def test_any_text_is_a_finite_number_or_refused_with_what_was_given(text):
    for declared in ({"action": Number}, {"action": Size, "unit": "MiB", "kind": int, "help": "it"}):
        try:
            assert abs(read([text], **declared)) < float("inf")
        except argparse.ArgumentError as error:
            assert str(error).startswith("--amount must be a") and str(error).endswith(f"(got {text})")


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


def test_errors_have_one_form():
    assert refusal("0", action=Number, kind=int, least=1) == "--amount must be at least 1 (got 0)"
    assert refusal("1.5", action=Number, kind=int) == "--amount must be a whole number (got 1.5)"
    assert refusal("0min", action=Duration, unit="s", above=0, help="it") == "--amount must be above 0 s (got 0min)"
    assert (
        refusal("2TiB", action=Size, unit="GiB", most=1024, help="it")
        == "--amount must be at most 1,024 GiB (got 2TiB)"
    )


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


def test_a_positional_argument_has_the_name_that_the_help_shows():
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("count", action=Number, kind=int, metavar="COUNT")
    with pytest.raises(argparse.ArgumentError, match=r"^COUNT must be a whole number \(got x\)$"):
        parser.parse_args(["x"])


def test_the_help_tells_how_to_give_a_unit():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", action=Duration, unit="s", help="how long", metavar="TIME")
    parser.add_argument("--brief", action=Duration, unit="s", help="short", brief=True)
    told = " ".join(parser.format_help().split())
    assert "--wait TIME how long; such as 30s or 10min, or a number of seconds" in told
    assert told.endswith("--brief BRIEF short")
