"""The making of the report about a database of nopayloaddb, from a snapshot for each tag."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
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
from cdb_rest.adopt.report import EXAMPLES, MEANINGS, MOVING, ChangedAnswer, Report
from cdb_rest.adopt.source import Snapshot, Source
from cdb_rest.rules.errors import InvalidInputError, quoted
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.rules.names import LIST_NAME_LENGTH, NAME_LENGTH, name_fault
from cdb_rest.rules.status import Status

# Beyond this number, the answers of further lists of a tag are not compared.
ANSWERS_KEPT = 100_000


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
    tags, lists = _read_objects(report, source, only)
    groups: list[SourceTag | None] = [*tags] if only else [*tags, None]
    _read_rows(report, source, groups, lists, progress)
    if not only:
        _add_detached(report, source.read(lambda snapshot: detached_summary(snapshot, decisions)))
    report.faults = {kind: report.faults[kind] for kind in MEANINGS if kind in report.faults}
    return report


def _read_objects(report: Report, source: Source, only: Sequence[str]) -> tuple[list[SourceTag], list[SourceList]]:
    """The wanted tags and all lists. Numbers, and faults of tags and types, are added to the report."""
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
    return tags, lists


def _read_rows(
    report: Report,
    source: Source,
    tags: Sequence[SourceTag | None],
    lists: Sequence[SourceList],
    progress: Callable[[int, int], object],
) -> None:
    """Add the faults of lists and rows to the report, with their numbers by status, of each tag (None: of lists without one)."""
    total = report.numbers["IOVs"]
    hashes: set[str] = set()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    lists_of_tags: defaultdict[int | None, list[SourceList]] = defaultdict(list)
    for item in lists:
        lists_of_tags[item.tag_id].append(item)
    for tag in tags:
        here = lists_of_tags[tag.id if tag else None]
        rows = source.read(partial(_Rows, report, tag, here, lambda count: progress(count, total)))
        _check_lists(report, tag, here)
        rows.add_to(report)
        count = counts[(tag.status or "no status") if tag else "lists without a tag"]
        count.update({"global tags": int(tag is not None), "payload lists": len(here)})
        for summary in rows.found.values():
            count["IOVs"] += summary.count
            if summary.rows_hash in hashes:
                report.shareable_iovs += summary.attached
            hashes.add(summary.rows_hash)
    report.statuses = [{"status": status, **count} for status, count in counts.items()]


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
