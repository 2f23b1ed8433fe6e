"""The declarations of all environment variables that the service reads, from variables.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environs import validate

SOURCE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Variable:
    """One environment variable. `type` is the name of a reader of `environs`; variables.toml explains the other members."""

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

    def check(self) -> Any:
        """The validator of `environs` for the value; None if every value of the type is allowed."""
        if self.choices:
            return validate.OneOf(self.choices)
        if self.pattern:
            return validate.Regexp(self.pattern)
        return validate.Range(self.min, self.max) if self.type == "int" else None


VARIABLES = tuple(
    Variable(group, name, **declared)
    for group, variables in tomllib.loads(SOURCE.read_text()).items()
    for name, declared in variables.items()
)
