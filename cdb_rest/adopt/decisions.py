"""What the operator decides about data that cdb does not store as nopayloaddb did."""

import csv
import dataclasses
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.moment import Mode
from cdb_rest.rules.status import Status


@dataclass(frozen=True)
class Choice:
    """A decision with few possible values. `fault` is what it decides; `values` begin with the default, None: it must be given.

    `detaches` and `opens` are the values with which the statements detach a row or open its end.
    """

    name: str
    fault: str
    values: tuple[str, ...]
    help: str
    default: str | None = None
    detaches: str = ""
    opens: str = ""

    @property
    def option(self) -> str:
        """The option of the command."""
        return "--" + self.name.replace("_", "-")


CHOICES = (
    Choice(
        *("negative", "negative", ("refuse", "detach")),
        "IOVs with a negative number: a list cannot have them; detach keeps them outside of the lists",
        detaches="detach",
    ),
    Choice(
        *("end_before_start", "end_before_start", ("open", "detach", "refuse")),
        "IOVs that end before their start, which the old lookup found nevertheless",
        detaches="detach",
        opens="open",
    ),
    Choice(
        *("empty", "empty", ("detach", "refuse")),
        "IOVs whose end is their start (in continuous mode): they hide the one before them in old answers",
        detaches="detach",
    ),
    Choice(
        *("null_comb_iov", "null_comb_iov", ("attach", "detach")),
        "IOVs without comb_iov, which the old lookup never found",
        detaches="detach",
    ),
    Choice(
        *("duplicate_starts", "equal_starts", ("newest", "refuse")),
        "IOVs of a list with the same start: the one with the greatest id stays, the others are detached",
        detaches="newest",
    ),
    Choice(
        *("two_lists", "two_lists", ("newest", "refuse")),
        "payload lists of one type in a tag: the one that changed last stays, the others are detached",
    ),
    Choice(
        *("bad_revision", "bad_revision", ("drop", "refuse")),
        "IOVs whose revision (extra) is not a number of up to 19 digits: drop leaves the revision out",
    ),
    Choice(
        *("frozen_as", "frozen_tag", ("frozen", "locked")),
        "frozen tags: nopayloaddb could still change them, here frozen is final",
    ),
    Choice(
        *("open_at_major", "open_at_major", ("keep", "open")),
        "IOVs that end at (their own major, 2^63-1): keep stores the numbers, open writes the open end",
        default="keep",
        opens="open",
    ),
    Choice(
        *("detached", "detached_iov", ("keep", "drop")),
        "IOVs without a list and lists without a tag",
        default="keep",
    ),
)
FAULT_CHOICES = {choice.fault: choice for choice in CHOICES}
NAME_KINDS = ("global tag", "payload type", "payload list")


@dataclass(frozen=True)
class Decisions:
    """The decisions that were given.

    `choices` by the name of the choice; `statuses`: the status here for each status of the source ('' for none); `renames`: other
    names for global tags; `names`: other names by kind and old name, for those that are not permitted here.
    """

    mode: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    share: bool = False

    def choice(self, name: str) -> str | None:
        """The value of a choice, None if it was not given and has no default."""
        return self.choices.get(name) or next(choice.default for choice in CHOICES if choice.name == name)

    def decides(self, fault: str) -> bool:
        """Whether data with this fault can be copied."""
        choice = FAULT_CHOICES.get(fault)
        return choice is None or self.choice(choice.name) not in (None, "refuse")

    def status(self, name: str | None) -> str | None:
        """The status here for a status of the source (None: it had none). None if the decision is missing."""
        if name not in self.statuses and name == Status.FROZEN:
            return self.choice("frozen_as")
        return self.statuses.get(name or "", name if name in list(Status) else None)

    def name(self, kind: str, old: str) -> str:
        """The name here of an object of the source."""
        if kind == "global tag" and old in self.renames:
            return self.renames[old]
        return self.names.get((kind, old), old)

    def list_name(self, old: str, payload_type: str | None) -> str:
        """The name here of a payload list, which follows the name of its type."""
        prefix = f"{payload_type}_"
        if ("payload list", old) not in self.names and old.startswith(prefix):
            return f"{self.name('payload type', payload_type or '')}_{old.removeprefix(prefix)}"
        return self.name("payload list", old)

    def extended(self, later: "Decisions", copied: Collection[str] = ()) -> "Decisions":
        """These decisions and those of `later` that say more. Raises `InvalidInputError` if one says something else.

        Only the names of global tags that are not in `copied` may be other ones.
        """
        if later.mode not in ("", self.mode):
            raise InvalidInputError(f"the copy was begun with --mode {self.mode}")
        merged: dict[str, Any] = {}
        for name in ("choices", "statuses", "renames", "names"):
            mine, others = dict(getattr(self, name)), getattr(later, name)
            for key, value in others.items():
                tag = key if name == "renames" else key[1] if name == "names" and key[0] == "global tag" else None
                if mine.get(key, value) != value and (tag is None or tag in copied):
                    raise InvalidInputError(f"the copy was begun with another decision about {key}: {mine[key]}")
            merged[name] = mine | others
        return dataclasses.replace(self, **merged)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `source_rows`."""
        return {
            "inclusive": self.mode == Mode.DISCRETE,
            "detaching": [item.fault for item in CHOICES if item.detaches and self.choice(item.name) == item.detaches],
            "opening": [item.fault for item in CHOICES if item.opens and self.choice(item.name) == item.opens],
        }

    def as_json(self) -> dict[str, Any]:
        """The decisions for the record of an adoption."""
        return dataclasses.asdict(self) | {
            "names": [{"kind": kind, "old": old, "new": new} for (kind, old), new in self.names.items()]
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Decisions":
        """The decisions of a record."""
        return cls(**value | {"names": {(item["kind"], item["old"]): item["new"] for item in value["names"]}})


def read_decisions(file: str | None, given: Mapping[str, Any]) -> Decisions:
    """The decisions of a TOML file, if there is one, replaced by those that were `given` as options (None: not given).

    The keys are the names of `CHOICES`, `mode`, `share`, `statuses`, `renames` and `rename_bad_names` (a CSV file, named relative
    to the TOML file). Raises `InvalidInputError`.
    """
    values: dict[str, Any] = {}
    if file is not None:
        try:
            values = tomllib.loads(Path(file).read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidInputError(f"{file} cannot be read: {error}") from error
        if values.get("rename_bad_names"):
            values["rename_bad_names"] = str(Path(file).parent / str(values["rename_bad_names"]))
    for name, value in given.items():
        if value not in (None, {}):
            values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
    choices = {choice.name: values.pop(choice.name) for choice in CHOICES if choice.name in values}
    for choice in CHOICES:
        _check(choice.name, choices.get(choice.name, choice.values[0]), choice.values)
    mode = values.pop("mode", "")
    if mode:
        _check("mode", mode, list(Mode))
    statuses, renames, share = values.pop("statuses", {}), values.pop("renames", {}), values.pop("share", False)
    names = read_names(values.pop("rename_bad_names", None))
    if values:
        raise InvalidInputError(f"unknown decision {min(values)}{f' in {file}' if file else ''}")
    if not all(isinstance(item, dict) for item in (statuses, renames)):
        raise InvalidInputError(f"statuses and renames must be tables in {file}")
    for name, status in statuses.items():
        _check(f"the status of {name}", status, list(Status))
    return Decisions(mode, choices, statuses, renames, names, bool(share))


def _check(what: str, value: Any, permitted: Iterable[str]) -> None:
    if value not in permitted:
        raise InvalidInputError(f"{what} must be one of {', '.join(permitted)} (got {value})")


def read_names(file: str | None) -> dict[tuple[str, str], str]:
    """The new names of a CSV file with the columns kind, old and new, by kind and old name. Raises `InvalidInputError`."""
    if file is None:
        return {}
    try:
        with Path(file).open(newline="") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}") from error
    names: dict[tuple[str, str], str] = {}
    for number, row in enumerate(rows, 2):
        if row.keys() < {"kind", "old", "new"} or row["kind"] not in NAME_KINDS:
            raise InvalidInputError(
                f"{file}, line {number}: needs the columns kind ({', '.join(NAME_KINDS)}), old and new"
            )
        names[row["kind"], row["old"]] = row["new"]
    return names
