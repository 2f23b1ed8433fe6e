"""The report about a database of nopayloaddb: its content, its faults, needed decisions, and the answers that will change."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import floor
from typing import Any

from django.conf import settings

from cdb_rest.adopt.contents import (
    SourceList,
    SourceTag,
    Summary,
    by_tag,
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
    mode: str
    choices: Mapping[str, str] = field(default_factory=dict)
    mode_hints: list[str] = field(default_factory=list)
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
        if not self.mode:
            lines.append("--mode continuous or discrete: nopayloaddb does not store it")
        elif self.mode != settings.CDB_IOV_MODE:
            lines.append(
                f"--mode {self.mode}: this database was made for {settings.CDB_IOV_MODE} intervals; make another one with "
                f"CDB_IOV_MODE={self.mode}"
            )
        lines += [
            f"{fault.option or 'repair the source'}: {fault.meaning} ({fault.count:,})"
            for fault in self.faults.values()
            if not fault.is_decided
        ]
        return lines

    @property
    def seconds(self) -> int:
        """The estimated time of a copy."""
        return round(5 + self.numbers["IOVs"] * SECONDS_PER_IOV)

    @property
    def gigabytes(self) -> float:
        """The estimated size of the copy on disk."""
        return self.numbers["IOVs"] * BYTES_PER_IOV / 1e9

    def add(
        self, kind: str, count: int = 1, examples: Sequence[str] = (), *, is_decided: bool, option: str = ""
    ) -> None:
        """Count a fault."""
        fault = self.faults.setdefault(kind, Fault(kind, option=option))
        fault.count += count
        fault.examples += examples[: EXAMPLES - len(fault.examples)]
        fault.is_decided = fault.is_decided and is_decided


def make_report(
    source: Source, decisions: Decisions, *, only: Sequence[str] = (), progress: Callable[[int, int], object]
) -> Report:
    """The report, with a snapshot for each tag. `progress` gets the number of IOVs that were read, and of all.

    `only` are the names of the tags that are wanted (empty: all, and what is in no tag). Raises `SourceError`.
    """
    standby = f", standby, hot_standby_feedback {source.feedback}" if source.is_standby else ""
    schema = source.schema
    report = Report(
        *(source.address, f"PostgreSQL {source.server_version}{standby}", schema.variant, schema.ids, schema.notes),
        decisions.mode,
        decisions.choices,
    )

    def read_frame(snapshot: Snapshot) -> tuple[list[SourceTag], list[SourceList], int]:
        [(_, iovs)] = snapshot.rows("source_greatest_id")
        tags = read_tags(snapshot)
        lists = read_lists(snapshot)
        types = read_types(snapshot)
        [(orphaned_iovs, orphaned_lists, described)] = snapshot.rows("source_orphans")
        if described:
            report.notes.append(f"IOVs with a description, which is not taken over: {described:,}.")
        if orphans := orphaned_iovs + orphaned_lists:
            examples = [f"{orphaned_iovs:,} IOVs and {orphaned_lists:,} payload lists: they count as detached"]
            report.add("orphan", orphans, examples, is_decided=True)
        report.numbers = {
            "global tags": len(tags),
            "payload types": len(types),
            "payload lists": len(lists),
            "IOVs": iovs,
        }
        if unknown := set(only) - {tag.name for tag in tags}:
            raise InvalidInputError(f"the source has no global tag {quoted(min(unknown))}")
        wanted = [tag for tag in tags if not only or tag.name in only]
        used = {item.payload_type for item in lists if not only or item.tag_id in {tag.id for tag in wanted}}
        _check_names(report, decisions, "payload type", [item.name for item in types if not only or item.name in used])
        return wanted, lists, iovs

    tags, lists, total = source.read(read_frame)
    _check_names(report, decisions, "global tag", [tag.name for tag in tags])
    for tag in tags:
        _check_status(report, decisions, tag)
    done = 0
    hashes: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = {}
    grouped = by_tag(lists)
    groups: list[SourceTag | None] = [*tags] if only else [*tags, None]
    for group in groups:
        here = grouped.get(group.id if group else None, [])
        known = {kind for kind, fault in report.faults.items() if len(fault.examples) >= EXAMPLES}

        def show(read: int, done: int = done) -> None:
            progress(done + read, total)

        rows = source.read(partial(_Rows, decisions, group, here, known, show))
        _check_lists(report, decisions, group, here)
        rows.add_to(report)
        count = counts.setdefault((group.status or "no status") if group else "lists without a tag", Counter())
        count.update({"global tags": int(group is not None), "payload lists": len(here)})
        for item in rows.found.values():
            done += item.count
            count["IOVs"] += item.count
            report.shareable_iovs += item.attached if item.attached and hashes[item.rows_hash] else 0
            hashes[item.rows_hash] += 1
    report.statuses = [{"status": status, **count} for status, count in counts.items()]
    if not only:
        _add_detached(report, decisions, source.read(lambda snapshot: detached_summary(snapshot, decisions)))
    report.faults = {kind: report.faults[kind] for kind in MEANINGS if kind in report.faults}
    return report


def _check_names(report: Report, decisions: Decisions, kind: str, names: Sequence[str]) -> None:
    taken: set[str] = set()
    for old in names:
        new = old if kind == "payload list" else decisions.name(kind, old)
        if kind == "payload list":
            fault = "too long" if len(new) > LIST_NAME_LENGTH else "/" if "/" in new or not new.isprintable() else ""
        else:
            fault = name_fault(new, settings.CDB_NAME_PATTERN)
        if new in taken:
            fault = fault or "the name is there already"
        if fault:
            report.add("bad_name", 1, [f"{kind} {quoted(old)}"], is_decided=False, option="--rename-bad-names")
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


def _check_status(report: Report, decisions: Decisions, tag: SourceTag) -> None:
    if tag.status == Status.FROZEN and tag.status not in decisions.statuses:
        choice = FAULT_CHOICES["frozen_tag"]
        is_decided = decisions.choice(choice.name) is not None
        report.add("frozen_tag", 1, [tag.name], is_decided=is_decided, option=choice.option)
    if tag.status not in list(Status):
        is_decided = (tag.status or "") in decisions.statuses
        report.unknown_statuses = sorted({*report.unknown_statuses, tag.status or ""})
        example = [f"{tag.name}: {quoted(tag.status or '')}"]
        report.add("unknown_status", 1, example, is_decided=is_decided, option="--map-status STATUS=…")


def _check_lists(report: Report, decisions: Decisions, tag: SourceTag | None, lists: Sequence[SourceList]) -> None:
    _check_names(
        report, decisions, "payload list", [decisions.list_name(item.name, item.payload_type) for item in lists]
    )
    for item in lists:
        if item.payload_type is None:
            report.add("no_type", 1, [item.name], is_decided=False)
        if tag is None:
            report.add("detached_list", 1, [item.name], is_decided=True, option=FAULT_CHOICES["detached_iov"].option)
        elif not item.stays:
            choice = FAULT_CHOICES["two_lists"]
            decided = decisions.decides("two_lists")
            report.add("two_lists", 1, [f"{tag.name}: {item.name}"], is_decided=decided, option=choice.option)


def _add_detached(report: Report, decisions: Decisions, summary: Summary) -> None:
    if summary.count:
        option = FAULT_CHOICES["detached_iov"].option
        report.add("detached_iov", summary.count, is_decided=True, option=option)
        report.statuses.append({"status": "IOVs without a list", "IOVs": summary.count})
    if summary.faults["bad_revision"]:
        option = FAULT_CHOICES["bad_revision"].option
        report.add(
            "bad_revision", summary.faults["bad_revision"], is_decided=decisions.decides("bad_revision"), option=option
        )


class _Rows:
    """The faults of the rows of one tag (None: of lists without a tag), read from a snapshot."""

    def __init__(
        self,
        decisions: Decisions,
        tag: SourceTag | None,
        lists: Sequence[SourceList],
        known: Collection[str],
        progress: Callable[[int], object],
        snapshot: Snapshot,
    ) -> None:
        """Of faults that are `known`, no examples are read. `progress` gets the number of rows that were read so far."""
        self.decisions, self.snapshot = decisions, snapshot
        self.names = {item.id: item.name for item in lists}
        read = 0

        def show(count: int) -> None:
            nonlocal read
            read += count
            progress(read)

        self.found = summaries(snapshot, list(self.names), decisions, show)
        self.totals: Counter[str] = Counter()
        for summary in self.found.values():
            self.totals.update(summary.faults)
        wanted = [kind for kind, count in self.totals.items() if count and kind not in known]
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
                choice = FAULT_CHOICES.get(kind)
                is_decided = self.decisions.decides(kind)
                option = choice.option if choice else ""
                report.add(kind, count, self.examples.get(kind, []), is_decided=is_decided, option=option)
        report.mode_hints = [
            f"{report.faults[kind].count:,} {MEANINGS[kind]}: {hint}"
            for kind, hint in (
                ("empty", "if they are many, an end is probably the last moment (discrete)"),
                ("open_at_major", "in discrete mode this is the end of a run"),
            )
            if kind in report.faults
        ]
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
