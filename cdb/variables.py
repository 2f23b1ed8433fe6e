"""The declarations of all environment variables that the service reads, from variables.toml."""

import re
import tomllib
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from cdb_rest.management.quantities import BYTES, SECONDS, parse

SOURCE = Path(__file__).with_suffix(".toml")
TRUE, FALSE = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")
# By the end of a name: the unit of a plain number, the units that may be given, and examples.
UNITS = {
    "_SECONDS": ("s", SECONDS, ", or one with a unit, such as 30s or 10min"),
    "_BYTES": ("B", BYTES, ", or one with a unit, such as 500MB or 8GiB"),
}


@dataclass(frozen=True)
class Variable:
    """One environment variable.

    `type` is str, int, bool, list, networks, path or regex; variables.toml explains the other members.
    """

    group: str
    name: str
    type: str
    meaning: str
    default: Any = None
    default_text: str = ""
    min: int | None = None
    max: int | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    public: bool = False

    def read(self, text: str) -> Any:
        """The value of a text. Raises `ValueError`, which says what it must be."""
        if self.type == "int":
            return self._number(text)
        if self.type == "bool" and text.lower() in TRUE + FALSE:
            return text.lower() in TRUE
        if self.type == "bool" or (self.choices and text not in self.choices):
            raise ValueError(f"must be one of {', '.join(self.choices or ('true', 'false'))}")
        if self.type == "regex":
            _check_expression(text)
        if self.pattern and not re.match(self.pattern, text):
            raise ValueError(f"must match {self.pattern}")
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if self.type == "networks":
            try:
                return [ip_network(part) for part in parts]
            except ValueError as error:
                raise ValueError(f"must be networks such as 10.1.0.0/16, separated by commas; {error}") from error
        return parts if self.type == "list" else text

    def _number(self, text: str) -> float:
        unit, units, allowed = next((found for end, found in UNITS.items() if self.name.endswith(end)), ("", {}, ""))
        number, (least, most) = parse(text, units, unit, int), (self.min, self.max)
        if number is None:
            raise ValueError(f"must be a whole number{allowed}")
        if (least is not None and number < least) or (most is not None and number > most):
            raise ValueError(f"must be {f'at least {least}' if most is None else f'from {least} to {most}'}")
        return number


def _check_expression(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from error


VARIABLES = tuple(
    Variable(group, name, **declared)
    for group, variables in tomllib.loads(SOURCE.read_text()).items()
    for name, declared in variables.items()
)
