"""Numbers, sizes, durations and times, such as 8GiB, 30s or 2026-11-24, as options of commands and as settings.

The classes are argparse actions. All errors have the same form: "--cores must be at least 1 (got 0)". A number without
a unit, and the result, are in the unit of the option.
"""

import argparse
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)
}
SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
NAMES = {"ms": "milliseconds", "s": "seconds", "min": "minutes"}
EXAMPLES = {"ms": "4ms or 2s", "s": "30s or 10min", "min": "30s or 10min"}
NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)


def parse(text: str, units: Mapping[str, float], unit: str, kind: type[int] | type[float]) -> float | None:
    """The number in `unit`, such as 30000 for 30s in ms, or None if the text is invalid.

    A number without a unit is in `unit`, and must be whole if `kind` is int; one with a unit is rounded then. Units may be
    written in lower or upper case.
    """
    found = NUMBER.fullmatch(text)
    if not found or not math.isfinite(float(found[1])):
        return None
    if not found[2]:
        try:
            return kind(found[1])
        except ValueError:
            return None
    factor = {name.lower(): factor for name, factor in units.items()}.get(found[2].lower(), math.inf)
    number = float(found[1]) * factor / units.get(unit, 1)
    return (kind(round(number)) if kind is int else number) if math.isfinite(number) else None


class Number(argparse.Action):
    """An option for a number: at least `least`, greater than `above`, at most `most`; each limit is optional.

    `kind` is float or int. With int, a number without a unit must be whole; one with a unit is rounded. `unit` is that of the
    result, of the limits, and of a number without a unit; users may write units in lower or upper case. With `needs_unit`, a
    number without a unit is invalid. The help text has examples, unless `brief`.
    """

    units: Mapping[str, float] = {}

    def __init__(self, option_strings: list[str], dest: str, *, help: str | None = None, **more: Any) -> None:
        self.kind: type[int] | type[float] = more.pop("kind", float)
        self.unit: str = more.pop("unit", "")
        self.least, self.above, self.most = (more.pop(name, None) for name in ("least", "above", "most"))
        self.unit_name = NAMES.get(self.unit, self.unit)
        self.needs_unit: bool = more.pop("needs_unit", False)
        if not more.pop("brief", not self.units or self.needs_unit):
            help = f"{help}; such as {EXAMPLES.get(self.unit, '500MB or 8GiB')}, or a number of {self.unit_name}"
        super().__init__(option_strings, dest, help=help, **more)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the number or the list of numbers. Raises `argparse.ArgumentError` if one is invalid or out of range."""
        found = [self._read(text) for text in values] if isinstance(values, list) else self._read(values)
        setattr(namespace, self.dest, found)

    def _read(self, text: str) -> float:
        name = self.option_strings[-1] if self.option_strings else self.metavar or self.dest
        number = parse(text, self.units, self.unit, self.kind)
        if number is None or (self.needs_unit and not text.strip()[-1].isalpha()):
            expected = "a whole number" if self.kind is int else "a number"
            if self.needs_unit:
                expected += f" with one of the units {', '.join(self.units)}"
            elif self.units:
                expected += f" of {self.unit_name}, or a number with one of the units {', '.join(self.units)}"
            raise argparse.ArgumentError(None, f"{name} must be {expected} (got {text})")
        for limit, is_violated, words in (
            (self.least, self.least is not None and number < self.least, "at least"),
            (self.above, self.above is not None and number <= self.above, "above"),
            (self.most, self.most is not None and number > self.most, "at most"),
        ):
            if is_violated:
                unit = f" {self.unit}" if self.unit else ""
                raise argparse.ArgumentError(None, f"{name} must be {words} {limit:,}{unit} (got {text})")
        return number


class Size(Number):
    """An option for a size of memory or disk: GB is 1000^3 bytes, GiB is 1024^3 bytes."""

    units = BYTES


class Duration(Number):
    """An option for a duration."""

    units = SECONDS


class Time(argparse.Action):
    """An option for a point in time: an ISO date, which means its beginning, or date and time; in UTC without a time zone."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the time, with a time zone. Raises `argparse.ArgumentError` if it is invalid."""
        try:
            found = datetime.fromisoformat(values)
        except ValueError:
            form = "a date or time such as 2026-11-24 or 2026-11-24T12:00:00Z"
            raise argparse.ArgumentError(None, f"{option_string} must be {form} (got {values})") from None
        setattr(namespace, self.dest, found if found.tzinfo else found.replace(tzinfo=UTC))


# Arguments of `add_argument` for frequent kinds of options.
IN_SECONDS: dict[str, Any] = {"action": Duration, "unit": "s", "above": 0, "metavar": "TIME"}
AT_LEAST_ONE: dict[str, Any] = {"action": Number, "kind": int, "least": 1}
