"""Effects: what a write changes in the payloads of a global tag, and what in it is probably a mistake."""

from dataclasses import dataclass, field
from enum import StrEnum

from cdb_rest.rules.errors import ConfirmationRequiredError
from cdb_rest.rules.moment import Interval

# The largest number of rows of a warning that are shown.
SHOWN = 100


class Kind(StrEnum):
    """The kind of a warning."""

    # Existing IOVs that will be valid nowhere, although no row of the file has their start.
    REMOVED = "removed"
    # Moments between IOVs in which no payload is valid, and that were no such gap before.
    GAP = "gap"
    FAR_START = "far_start"
    LONG = "long"
    # One payload URL with several checksums.
    OTHER_CHECKSUM = "other_checksum"
    # Payload URLs that differ only in case, or in spaces at the ends.
    OTHER_CASE = "other_case"

    @property
    def needs_confirmation(self) -> bool:
        """Whether the write is only made if the client confirms it."""
        return self in (Kind.REMOVED, Kind.GAP)


@dataclass(frozen=True, slots=True)
class EffectWarning:
    """A probable mistake. `rows` are the numbers of the first `SHOWN` rows of the file that it is about, maybe none.

    `count` is the number of what it is about: IOVs, gaps or rows.
    """

    kind: Kind
    payload_type: str
    text: str
    rows: tuple[int, ...] = ()
    count: int = 1

    @property
    def needs_confirmation(self) -> bool:
        """Whether the write is only made if the client confirms it."""
        return self.kind.needs_confirmation


@dataclass
class TypeEffects:
    """What a write changes in the payload list of a type.

    - `added`, `unchanged`: numbers of rows of the file; `unchanged` ones are valid in their whole interval already.
    - `shortened`, `starts_later`, `split`, `replaced`, `removed`: numbers of existing IOVs. Each IOV counts once. A replaced one
      is valid nowhere any more, but a row of the file has its start.
    - `gaps`: the number of new gaps.
    - `interval`: from the first difference to the end of the last one, None without a difference.
    - `difference_count`: the number of intervals in which another payload is valid than before.
    """

    payload_type: str
    added: int = 0
    unchanged: int = 0
    shortened: int = 0
    starts_later: int = 0
    split: int = 0
    replaced: int = 0
    removed: int = 0
    gaps: int = 0
    interval: Interval | None = None
    difference_count: int = 0


@dataclass
class Effects:
    """What a write changes in a global tag. `warnings` are ordered by payload type; those that need a confirmation are first.

    `creates_tag`, `new_types` (names) and `new_lists` (their number) say what an import creates.
    """

    types: list[TypeEffects] = field(default_factory=list)
    warnings: list[EffectWarning] = field(default_factory=list)
    creates_tag: bool = False
    new_types: list[str] = field(default_factory=list)
    new_lists: int = 0

    @property
    def changes_nothing(self) -> bool:
        """Whether the tag is the same after the write."""
        return not (self.creates_tag or self.new_lists or any(one.added or one.difference_count for one in self.types))

    @property
    def needs_confirmation(self) -> bool:
        """Whether the write is only made if the client confirms it."""
        return any(warning.needs_confirmation for warning in self.warnings)


def check_confirmed(effects: Effects) -> None:
    """Raise `ConfirmationRequiredError`, with the warnings and rows, if the effects need a confirmation."""
    warnings = [warning for warning in effects.warnings if warning.needs_confirmation]
    if warnings:
        raise ConfirmationRequiredError(
            " ".join(f"{warning.payload_type}: {warning.text}" for warning in warnings[:10])
            + " Confirm it, if this is meant.",
            rows=[
                {"row": number - 1, "code": warning.kind.value, "detail": f"{warning.payload_type}: {warning.text}"}
                for warning in warnings
                for number in warning.rows
            ][:SHOWN],
        )
