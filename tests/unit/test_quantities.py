"""Sizes, times and numbers on command lines."""

import argparse
from datetime import UTC, datetime

import pytest

from cdb_rest.management.quantities import Duration, Number, Size, Time

SECONDS = {"action": Duration, "unit": "s", "help": "it"}
MEBIBYTES = {"action": Size, "unit": "MiB", "help": "it"}
A_FEW = {"action": Number, "kind": int, "least": -5, "most": 1000}


def read(text, declared):
    parser = argparse.ArgumentParser(prog="cdb", exit_on_error=False)
    parser.add_argument("--amount", **declared)
    return parser.parse_args(["--amount", text]).amount


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        *((SECONDS, text, 90) for text in ("90", "90s", "90 S", "1.5min", "1.5 MIN", "90000ms", "0.025h")),
        *((MEBIBYTES, text, 2048) for text in ("2048", "2GiB", "2 gib")),
        *((A_FEW, f" {number}", number) for number in (-5, 1000)),
        ({"action": Time}, "2026-11-24", datetime(2026, 11, 24, tzinfo=UTC)),
        ({"action": Time}, "2026-11-24T13:00:00+01:00", datetime(2026, 11, 24, 12, tzinfo=UTC)),
    ],
)
def test_a_quantity_may_have_a_unit_and_a_time_its_zone(declared, text, value):
    assert read(text, declared) == value


INVALID = (
    (SECONDS, ["", "s", "1x", "1 2", "1,5s", "1_000", "nan", "inf", "1e999", "8G", "5m", "\u0663s"]),
    ({"action": Time}, ["", "yesterday", "2026-13-01", "3d"]),
    (A_FEW, [" -6", "1001"]),
)


@pytest.mark.parametrize(("declared", "text"), [(declared, text) for declared, texts in INVALID for text in texts])
def test_an_invalid_quantity_is_rejected(declared, text):
    with pytest.raises(argparse.ArgumentError, match="--amount must be "):
        read(text, declared)
