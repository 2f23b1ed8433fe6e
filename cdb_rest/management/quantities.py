"""Command line options for numbers, sizes, durations and times, such as 8GiB, 30s or 2026-11-24, with checks of their range.

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
EXAMPLES = {
    "ms": "4ms or 2s",
    "s": "30s or 10min",
    "min": "30s or 10min",
    "MiB": "500MB or 8GiB",
    "GiB": "500MB or 8GiB",
}
NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)


class Number(argparse.Action):
    """An option for a number: at least `least`, greater than `above`, at most `most`; each limit is optional.

    `kind` is float or int. With int, a number without a unit must be whole. A number with a unit is rounded after the
    conversion to the unit of the option. Limits are in that unit.
    """

    kinds = {int: "a whole number", float: "a number"}
    units: Mapping[str, float] = {}
    unit = ""

    def __init__(
        self,
        option_strings: list[str],
        dest: str,
        *,
        kind: type[int] | type[float] = float,
        least: float | None = None,
        above: float | None = None,
        most: float | None = None,
        **more: Any,
    ) -> None:
        self.kind, self.least, self.above, self.most = kind, least, above, most
        super().__init__(option_strings, dest, **more)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the number or the list of numbers. Raises `argparse.ArgumentError` if one is invalid or out of range."""
        name = self.option_strings[-1] if self.option_strings else self.metavar or self.dest
        numbers = [self._read(str(name), text) for text in values] if isinstance(values, list) else None
        setattr(namespace, self.dest, self._read(str(name), values) if numbers is None else numbers)

    def _read(self, name: str, text: str) -> float:
        number = self._parse(text)
        if number is None:
            raise argparse.ArgumentError(None, f"{name} must be {self._expected()} (got {text})")
        if limit := self._violated_limit(number):
            raise argparse.ArgumentError(None, f"{name} must be {limit}{self.unit and f' {self.unit}'} (got {text})")
        return number

    def _parse(self, text: str) -> float | None:
        """The number in the unit of the option, or None if the text is invalid."""
        found = NUMBER.fullmatch(text)
        if not found:
            return None
        number, unit = found.groups()
        if not unit:
            return self._exactly(number)
        factor = next((factor for name, factor in self.units.items() if name.lower() == unit.lower()), None)
        return None if factor is None else self._rounded(float(number) * factor / self.units[self.unit])

    def _exactly(self, number: str) -> float | None:
        try:
            return self.kind(number) if math.isfinite(float(number)) else None
        except ValueError:
            return None

    def _rounded(self, number: float) -> float | None:
        return self.kind(round(number) if self.kind is int else number) if math.isfinite(number) else None

    def _expected(self) -> str:
        return self.kinds[self.kind]

    def _violated_limit(self, number: float) -> str:
        """The limit that the number violates, in words; empty if the number is in range."""
        if self.least is not None and number < self.least:
            return f"at least {self.least:,}"
        if self.above is not None and number <= self.above:
            return f"above {self.above:,}"
        if self.most is not None and number > self.most:
            return f"at most {self.most:,}"
        return ""


class _Quantity(Number):
    """A number with a unit. `unit` is the unit of the result, and of a number without one.

    `unit` must be a key of `units`. Unless `brief`, it must also be a key of `EXAMPLES`, and examples are added to the
    help text. Users may write units in lower or upper case.
    """

    def __init__(
        self, option_strings: list[str], dest: str, *, unit: str, help: str, brief: bool = False, **more: Any
    ) -> None:
        self.unit = unit
        text = help if brief else f"{help}; such as {EXAMPLES[unit]}, or a number of {NAMES.get(unit, unit)}"
        super().__init__(option_strings, dest, help=text, **more)

    def _expected(self) -> str:
        plain = f"{self.kinds[self.kind]} of {NAMES.get(self.unit, self.unit)}"
        return f"{plain}, or a number with one of the units {', '.join(self.units)}"


class Size(_Quantity):
    """An option for a size of memory or disk: GB is 1000^3 bytes, GiB is 1024^3 bytes."""

    units = BYTES


class Duration(_Quantity):
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
IN_MILLISECONDS: dict[str, Any] = IN_SECONDS | {"unit": "ms"}
AT_LEAST_ONE: dict[str, Any] = {"action": Number, "kind": int, "least": 1}
