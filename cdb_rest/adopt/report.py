"""The report about a database of nopayloaddb: its content, its faults, needed decisions, and the answers that will change."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import floor
from typing import Any

from django.conf import settings

from cdb_rest.adopt.contents import (
    SourceList,
    SourceTag,
    Summary,
    detached_summary,
    read_lists,
    read_tags,
    read_types,
    summaries,
)
from cdb_rest.adopt.decisions import FAULT_CHOICES, Decisions
from cdb_rest.adopt.source import Snapshot, Source
from cdb_rest.rules.errors import InvalidInputError, quoted
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.rules.names import LIST_NAME_LENGTH, NAME_LENGTH, name_fault
from cdb_rest.rules.status import Status

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
# Beyond this number, answers of further lists are not compared.
ANSWERS_KEPT = 100_000


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


def make_report(
    source: Source, decisions: Decisions, *, only: Sequence[str] = (), progress: Callable[[int, int], object]
) -> Report:
    """The report, with a snapshot for each tag. `progress` gets the number of IOVs that were read since the last call,
    and that of all.

    `only` are the names of the tags that are wanted (empty: all, and what is in no tag). Raises `SourceError`.
    """
    standby = f", standby, hot_standby_feedback {source.feedback}" if source.is_standby else ""
    schema = source.schema
    report = Report(
        source=source.address,
        server=f"PostgreSQL {source.server_version}{standby}",
        variant=schema.variant,
        ids=schema.ids,
        notes=[*schema.notes],
        decisions=decisions,
    )
    tags, lists, types = source.read(lambda snapshot: (read_tags(snapshot), read_lists(snapshot), read_types(snapshot)))
    [(_, total)] = source.read(lambda snapshot: snapshot.rows("source_greatest_id"))
    report.numbers = {
        "global tags": len(tags),
        "payload types": len(types),
        "payload lists": len(lists),
        "IOVs": total,
    }
    [(orphaned_iovs, orphaned_lists, described)] = source.read(lambda snapshot: snapshot.rows("source_orphans"))
    if described:
        report.notes.append(f"IOVs with a description, which is not taken over: {described:,}.")
    if orphans := orphaned_iovs + orphaned_lists:
        example = f"{orphaned_iovs:,} IOVs and {orphaned_lists:,} payload lists: they count as detached"
        report.add("orphan", orphans, [example])
    if unknown := set(only) - {tag.name for tag in tags}:
        raise InvalidInputError(f"the source has no global tag {quoted(min(unknown))}")
    if only:
        tags = [tag for tag in tags if tag.name in only]
        ids = {tag.id for tag in tags}
        used = {item.payload_type for item in lists if item.tag_id in ids}
        types = [item for item in types if item.name in used]
    _check_names(report, "payload type", [item.name for item in types])
    _check_names(report, "global tag", [tag.name for tag in tags])
    for tag in tags:
        _check_status(report, tag)
    hashes: set[str] = set()
    counts: dict[str, Counter[str]] = {}
    lists_of_tags: defaultdict[int | None, list[SourceList]] = defaultdict(list)
    for item in lists:
        lists_of_tags[item.tag_id].append(item)
    groups: list[SourceTag | None] = [*tags] if only else [*tags, None]
    for group in groups:
        here = lists_of_tags[group.id if group else None]
        rows = source.read(partial(_Rows, report, group, here, lambda count: progress(count, total)))
        _check_lists(report, group, here)
        rows.add_to(report)
        count = counts.setdefault((group.status or "no status") if group else "lists without a tag", Counter())
        count.update({"global tags": int(group is not None), "payload lists": len(here)})
        for summary in rows.found.values():
            count["IOVs"] += summary.count
            if summary.rows_hash in hashes:
                report.shareable_iovs += summary.attached
            hashes.add(summary.rows_hash)
    report.statuses = [{"status": status, **count} for status, count in counts.items()]
    if not only:
        _add_detached(report, source.read(lambda snapshot: detached_summary(snapshot, decisions)))
    report.faults = {kind: report.faults[kind] for kind in MEANINGS if kind in report.faults}
    return report


def _check_names(report: Report, kind: str, names: Sequence[str]) -> None:
    taken: set[str] = set()
    for old in names:
        new = old if kind == "payload list" else report.decisions.name(kind, old)
        if kind == "payload list":
            is_bad = len(new) > LIST_NAME_LENGTH or "/" in new or not new.isprintable()
        else:
            is_bad = bool(name_fault(new, settings.CDB_NAME_PATTERN))
        if is_bad or new in taken:
            report.add("bad_name", 1, [f"{kind} {quoted(old)}"], option="--rename-bad-names", is_decided=False)
            new = _suggestion(new, taken)
            report.bad_names.append((kind, old, new))
        taken.add(new)


def _suggestion(name: str, taken: set[str]) -> str:
    """A permitted name that resembles `name` and is not taken."""
    text = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_.-") else "_" for letter in name)
    text = text.lstrip("-.")[: NAME_LENGTH - 5] or "unnamed"
    found, number = text, 2
    while found in taken or name_fault(found):
        found, number = f"{text}_{number}", number + 1
    return found


def _check_status(report: Report, tag: SourceTag) -> None:
    statuses = report.decisions.statuses
    if tag.status == Status.FROZEN and tag.status not in statuses:
        report.add("frozen_tag", 1, [tag.name])
    if tag.status not in list(Status):
        status = tag.status or ""
        report.unknown_statuses = sorted({*report.unknown_statuses, status})
        example = f"{tag.name}: {quoted(status)}"
        report.add("unknown_status", 1, [example], option="--map-status STATUS=…", is_decided=status in statuses)


def _check_lists(report: Report, tag: SourceTag | None, lists: Sequence[SourceList]) -> None:
    _check_names(report, "payload list", [report.decisions.list_name(item.name, item.payload_type) for item in lists])
    for item in lists:
        if item.payload_type is None:
            report.add("no_type", 1, [item.name], is_decided=False)
        if tag is None:
            report.add("detached_list", 1, [item.name], option=FAULT_CHOICES["detached_iov"].option)
        elif not item.stays:
            report.add("two_lists", 1, [f"{tag.name}: {item.name}"])


def _add_detached(report: Report, summary: Summary) -> None:
    if summary.count:
        report.add("detached_iov", summary.count)
        report.statuses.append({"status": "IOVs without a list", "IOVs": summary.count})
    if summary.faults["bad_revision"]:
        report.add("bad_revision", summary.faults["bad_revision"])


class _Rows:
    """The faults of the rows of one tag (None: of lists without a tag), read from a snapshot."""

    def __init__(
        self,
        report: Report,
        tag: SourceTag | None,
        lists: Sequence[SourceList],
        progress: Callable[[int], object],
        snapshot: Snapshot,
    ) -> None:
        """Of faults with enough examples in the report, no more are read."""
        self.decisions, self.snapshot = report.decisions, snapshot
        self.names = {item.id: item.name for item in lists}
        self.found = summaries(snapshot, lists, report.decisions, progress)
        self.totals: Counter[str] = Counter()
        for summary in self.found.values():
            self.totals.update(summary.faults)
        told = {kind for kind, fault in report.faults.items() if len(fault.examples) >= EXAMPLES}
        wanted = [kind for kind, count in self.totals.items() if count and kind not in told]
        self.examples = {kind: self._examples(kind) for kind in wanted}
        self.changed_answers: list[ChangedAnswer] = []
        for list_id, summary in self.found.items():
            if (
                tag is not None
                and len(self.changed_answers) < ANSWERS_KEPT
                and any(summary.faults[kind] for kind in MOVING)
            ):
                self.changed_answers += self._changed_answers(tag.name, list_id, self.names[list_id])

    def add_to(self, report: Report) -> None:
        """Add what was found to a report."""
        for kind, count in self.totals.items():
            if count:
                report.add(kind, count, self.examples.get(kind, []))
        report.changed_answers += self.changed_answers

    def _examples(self, kind: str) -> list[str]:
        ids = [list_id for list_id, summary in self.found.items() if summary.faults[kind]]
        values = {"list_ids": ids, "most": EXAMPLES} | self.decisions.parameters
        rows = self.snapshot.rows("source_examples", values, fault=kind)
        return [
            f"id {iov_id} in {self.names[list_id]}: {url} [({major}, {minor}), ({major_end}, {minor_end}))"
            + (f", comb_iov {stored}" if kind == "wrong_comb_iov" else "")
            for iov_id, list_id, url, major, minor, major_end, minor_end, stored in rows
        ]

    def _changed_answers(self, tag: str, list_id: int, name: str) -> list[ChangedAnswer]:
        values = {"list_ids": [list_id]} | self.decisions.parameters
        answers: list[ChangedAnswer] = []
        for since, until, old, new in self.snapshot.rows("source_changed_answers", values):
            answer = ChangedAnswer(tag, name, _moment(since), _moment(until), old, new)
            previous = answers[-1] if answers else None
            if previous and (previous.until, previous.old, previous.new) == (answer.since, old, new):
                answer = dataclasses.replace(previous, until=answer.until)
                answers.pop()
            answers.append(answer)
        return answers


def _moment(combined: Any) -> str:
    if combined is None:
        return ""
    if combined >= 0:
        return str(Moment.from_combined(combined))
    major = floor(combined)
    minor = int((combined - major).scaleb(19))
    # The moments of rows with a negative number. A minor number above the greatest one is a negative one of the next major.
    return str(Moment(major, minor) if minor <= OPEN else Moment(major + 1, minor - 10**19))
