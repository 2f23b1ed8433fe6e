"""The report about a database of nopayloaddb: its content, its faults, needed decisions, and the answers that will change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from cdb_rest.adopt.decisions import FAULT_CHOICES, Decisions

EXAMPLES = 10
# Measured on two cores: seconds and bytes on disk for each IOV.
SECONDS_PER_IOV = 17e-6
BYTES_PER_IOV = 560
MEANINGS = {
    "negative": "IOVs with a negative number",
    "end_before_start": "IOVs that end before their start",
    "empty": "IOVs whose end is their start",
    "equal_starts": "IOVs with the same start as another one of their list",
    "null_comb_iov": "IOVs without comb_iov, which the old lookup never finds",
    "wrong_comb_iov": "IOVs with a wrong comb_iov, which the old lookup finds at wrong moments",
    "open_at_major": "IOVs that end at (their own major, 2^63-1)",
    "bad_revision": "IOVs whose revision (extra) is not a number",
    "two_lists": "payload lists of a type that their tag has twice",
    "unknown_status": "global tags with a status that has no meaning here",
    "frozen_tag": "frozen global tags",
    "bad_name": "names that are not permitted here, or not unique",
    "orphan": "objects that refer to one that does not exist",
    "no_type": "payload lists without a payload type, which cannot be copied: repair them in the source",
    "overlap": "IOVs that reach beyond the next start, which lookups ignore",
    "detached_iov": "IOVs without a list",
    "detached_list": "payload lists without a tag",
}
# Faults because of which lookups find other rows than before.
MOVING = ("negative", "end_before_start", "empty", "null_comb_iov", "equal_starts", "wrong_comb_iov")


@dataclass
class Fault:
    """A kind of fault: how often it occurs, examples, the option that decides it ('' if none does), and whether that is given."""

    kind: str
    count: int = 0
    examples: list[str] = field(default_factory=list)
    option: str = ""
    is_decided: bool = True

    @property
    def meaning(self) -> str:
        """What the fault is, as a noun."""
        return MEANINGS[self.kind]


@dataclass(frozen=True)
class ChangedAnswer:
    """From `since` until `until` (''; to the end of time), the old lookup finds another payload than it should (None: none)."""

    global_tag: str
    payload_list: str
    since: str
    until: str
    old: str | None
    new: str | None


@dataclass
class Report:
    """What a database of nopayloaddb holds."""

    source: str
    server: str
    variant: str
    ids: str
    notes: list[str]
    decisions: Decisions
    numbers: dict[str, int] = field(default_factory=dict)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    unknown_statuses: list[str] = field(default_factory=list)
    bad_names: list[tuple[str, str, str]] = field(default_factory=list)
    changed_answers: list[ChangedAnswer] = field(default_factory=list)
    shareable_iovs: int = 0

    @property
    def missing(self) -> list[str]:
        """The decisions that are missing, one line each."""
        lines = []
        mode = self.decisions.mode
        if not mode:
            lines.append("--mode continuous or discrete: nopayloaddb does not store it")
        elif mode != settings.CDB_IOV_MODE:
            lines.append(
                f"--mode {mode}: this database was made for {settings.CDB_IOV_MODE} intervals; make another one with "
                f"CDB_IOV_MODE={mode}"
            )
        lines += [
            f"{fault.option or 'repair the source'}: {fault.meaning} ({fault.count:,})"
            for fault in self.faults.values()
            if not fault.is_decided
        ]
        return lines

    @property
    def mode_hints(self) -> list[str]:
        """What the rows say about the mode, one line each."""
        return [
            f"{self.faults[kind].count:,} {MEANINGS[kind]}: {hint}"
            for kind, hint in (
                ("empty", "if they are many, an end is probably the last moment (discrete)"),
                ("open_at_major", "in discrete mode this is the end of a run"),
            )
            if kind in self.faults
        ]

    @property
    def seconds(self) -> int:
        """The estimated time of a copy."""
        return round(5 + self.numbers["IOVs"] * SECONDS_PER_IOV)

    @property
    def gigabytes(self) -> float:
        """The estimated size of the copy on disk."""
        return self.numbers["IOVs"] * BYTES_PER_IOV / 1e9

    def add(
        self,
        kind: str,
        count: int = 1,
        examples: Sequence[str] = (),
        *,
        option: str | None = None,
        is_decided: bool | None = None,
    ) -> None:
        """Count a fault. `option` and `is_decided` are for faults that no choice of `CHOICES` decides."""
        if option is None:
            option = FAULT_CHOICES[kind].option if kind in FAULT_CHOICES else ""
        if is_decided is None:
            is_decided = self.decisions.decides(kind)
        fault = self.faults.setdefault(kind, Fault(kind, option=option))
        fault.count += count
        fault.examples += examples[: EXAMPLES - len(fault.examples)]
        fault.is_decided = fault.is_decided and is_decided
