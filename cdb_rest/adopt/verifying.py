"""Comparison of all answers of a database of nopayloaddb with those of its copy.

The published lookup finds, for each list, the row with the latest start at or before a moment, whatever its end. So the answers
of a list change only at the starts of its rows, and two lists give the same answers at all moments if and only if they have the
same rows.
"""

import heapq
import json
import random
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.adopt.contents import SourceList, Summary, batches, read_lists, read_tags, summaries
from cdb_rest.adopt.copying import Copy
from cdb_rest.adopt.decisions import FAULT_CHOICES
from cdb_rest.adopt.report import MOVING
from cdb_rest.adopt.source import Snapshot, SourceError
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.history.contents import iovs_of, present_lists
from cdb_rest.models import AdoptedList, AdoptedTag, GlobalTag, PayloadList
from cdb_rest.rules.moment import OPEN, Mode, Moment

OWN_HASHES = named_sql.load("own_hashes").replace("{hash}", named_sql.load("row_hash"))
RANDOM_ROW = named_sql.load("random_start")
OWN_ANSWER = named_sql.load("own_answer")
DIFFERENCES_SHOWN = 10
HTTP_SECONDS = 60
# In the place of the URL, if no payload is found.
NOTHING = ("nothing",)
# Rows as tuples: URL, checksum, size, interval (four numbers), revision.
Row = tuple[Any, ...]


@dataclass
class Verification:
    """How many lists give equal answers, other ones because of a decision, and other ones without an explanation.

    `reasons` counts the lists by the explanation; `lines` has what is not explained, and `asked` the number of HTTP requests.
    """

    equal: int = 0
    explained: int = 0
    unexplained: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    asked: int = 0

    def explain(self, reasons: Sequence[str]) -> None:
        """Count answers that differ for these reasons."""
        self.explained += 1
        self.reasons.update(reasons)

    def add(self, other: "Verification") -> None:
        """Add the numbers, reasons and lines of another part."""
        self.equal += other.equal
        self.explained += other.explained
        self.unexplained += other.unexplained
        self.reasons.update(other.reasons)
        self.lines += other.lines

    def fail(self, line: str) -> None:
        """Count answers that differ for no known reason."""
        self.unexplained += 1
        self.lines.append(line)


def verify(copy: Copy, only: Collection[str] = ()) -> Verification:
    """Compare the adopted tags, all or `only` those with these names in the source, with the source. Raises `SourceError`."""
    result = Verification()
    tags = {tag.id: tag for tag in copy.source.read(read_tags)}
    for adopted in copy.adoption.tags.order_by("source_id"):
        if only and adopted.source_name not in only:
            continue
        if adopted.source_id not in tags:
            result.fail(f"{adopted.source_name}: it was deleted in the source since (--update)")
            continue
        result.add(copy.source.read(partial(_verify_tag, copy, adopted)))
    if copy.adoption.finished is not None and not only:
        for missing in sorted(tags.keys() - set(copy.adoption.tags.values_list("source_id", flat=True))):
            result.fail(f"{tags[missing].name}: it was created in the source since (--update)")
    return result


def _verify_tag(copy: Copy, adopted: AdoptedTag, snapshot: Snapshot) -> Verification:
    result = Verification()
    here = GlobalTag.objects.filter(id=adopted.tag_id).first()
    if here is None:
        result.explain(["deleted here"])
        return result
    lists = read_lists(snapshot, adopted.source_id)
    found = summaries(snapshot, lists, copy.decisions, partial(copy.progress, here.name))
    own = {item.payload_type.name: item for item in here.payload_lists.select_related("payload_type")}
    hashes = _own_hashes([item.id for item in own.values()])
    changed_here = ["changed here since"] if here.revision != adopted.revision else []
    known = {item.source_id: item for item in copy.adoption.lists.filter(source_id__in=found)}
    seen = set()
    for item in lists:
        if not item.stays:
            result.explain(["two_lists"])
            continue
        name = copy.decisions.name("payload type", item.payload_type or "")
        seen.add(name)
        ours = own.get(name)
        summary = found[item.id]
        if (hashes[ours.id] if ours else (0, "0")) == (summary.attached, summary.rows_hash):
            reasons = [kind for kind, count in summary.faults.items() if count and _alters(copy, kind)]
            if reasons:
                result.explain(reasons)
            else:
                result.equal += 1
        elif changed_here and _was_changed(known.get(item.id), ours, summary):
            result.explain(changed_here)
        else:
            where = f"{here.name}, {name}"
            differences = _differences(copy, snapshot, item, ours)
            if shown := [*islice(differences, DIFFERENCES_SHOWN)]:
                count = len(shown) + sum(1 for _ in differences)
                result.fail(f"{where}: {count:,} moments: {'; '.join(shown)}")
            else:
                # The hashes differ where the servers write a text differently, not the text.
                result.equal += 1
    for name in sorted(own.keys() - seen):
        if changed_here:
            result.explain(changed_here)
        elif hashes[own[name].id][0]:
            result.fail(f"{here.name}, {name}: the source has no list of this type (--update)")
    return result


def _was_changed(known: AdoptedList | None, ours: PayloadList | None, summary: Summary) -> bool:
    """Whether a list of a tag that was changed here was changed there or here since its adoption. Changes by SQL do not count."""
    return (
        known is None
        or ours is None
        or (known.list_id, known.version) != (ours.id, ours.version)
        or (known.iov_count, known.rows_hash) != (summary.attached, summary.rows_hash)
    )


def _alters(copy: Copy, kind: str) -> bool:
    """Whether a fault alters answers with the decisions of the copy."""
    if kind == "wrong_comb_iov":
        return True
    choice = FAULT_CHOICES.get(kind)
    return choice is not None and copy.decisions.choice(choice.name) not in ("keep", None)


def _own_hashes(list_ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    found: dict[int, tuple[int, str]] = {}
    for batch in batches(list_ids):
        found |= {row[0]: (row[1], row[2]) for row in fetch_all(OWN_HASHES, {"list_ids": batch})}
    return found


def _differences(copy: Copy, snapshot: Snapshot, item: SourceList, ours: PayloadList | None) -> Iterator[str]:
    """The moments at which the answers begin to differ, with both. Only the rows at one moment are in memory."""
    values = {"list_ids": [item.id]} | copy.decisions.parameters
    sides = [snapshot.stream("source_attached", values), _own_rows(ours) if ours else iter(())]
    by_start = heapq.merge(*(((row[3:5], side, row) for row in rows) for side, rows in enumerate(sides)))
    answers: list[Row | None] = [None, None]
    for start, changes in groupby(by_start, key=lambda change: change[0]):
        for _, side, row in changes:
            answers[side] = row
        before, after = answers
        if before != after:
            yield f"at {Moment(*start)} {_shown(before)} -> {_shown(after)}"


def _shown(row: Row | None) -> str:
    return NOTHING[0] if row is None else f"{row[0]} [({row[3]}, {row[4]}), ({row[5]}, {row[6]}))"


def _own_rows(ours: PayloadList) -> Iterator[Row]:
    columns = ("payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "extra")
    with transaction.atomic():
        for row in iovs_of(present_lists(PayloadList.objects.filter(id=ours.id))):
            yield tuple(row[column] for column in columns)


def verify_against(copy: Copy, url: str, moments: int, result: Verification, show: Callable[[int], object]) -> None:
    """Ask the old service at `url` at random moments, and compare its answers with ours. Raises `SourceError`."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise SourceError("--against must be an http or https URL")
    base = url.rstrip("/") if "cdb_rest" in urlsplit(url).path else f"{url.rstrip('/')}/api/cdb_rest"
    with_iovs = PayloadList.objects.filter(global_tag__isnull=False, iov_count__gt=0).values("global_tag")
    tags = [*copy.adoption.tags.filter(tag_id__in=with_iovs)]
    if not tags:
        raise SourceError("no adopted tag has IOVs, so there is nothing to ask")
    for _ in range(moments):
        adopted = random.choice(tags)  # noqa: S311 -- no secret
        moment = _random_moment(adopted.tag_id)
        answer = _ask(base, adopted.source_name, moment)
        result.asked += 1
        show(1)
        here = GlobalTag.objects.get(id=adopted.tag_id)
        old = {copy.decisions.name("payload type", str(row[0])): _url_and_start(row) for row in answer}
        own = {row[0]: _url_and_start(row) for row in _own_answer(here.name, moment, copy.decisions.mode)}
        differing = {
            name: (old.get(name, NOTHING)[0], own.get(name, NOTHING)[0])
            for name in sorted(old.keys() | own.keys())
            if old.get(name) != own.get(name)
        }
        if not differing:
            result.equal += 1
        elif here.revision != adopted.revision:
            result.explain(["changed here since"])
        else:
            result.add(copy.source.read(partial(_explain, copy, adopted, moment, differing)))


def _random_moment(tag_id: int) -> Moment:
    """A moment at, just before or just after the start of a random row, or at its end."""
    [(major, minor, major_end, minor_end)] = fetch_all(RANDOM_ROW, {"tag_id": tag_id})
    choices = [(major, minor), (major, max(minor - 1, 0)), (major, min(minor + 1, OPEN)), (major_end, minor_end)]
    return Moment(*random.choice(choices))  # noqa: S311


def _ask(base: str, tag: str, moment: Moment) -> list[list[Any]]:
    query = urlencode({"gtName": tag, "majorIOV": moment.major, "minorIOV": moment.minor})
    try:
        with urllib.request.urlopen(f"{base}/payloadiovs/?{query}", timeout=HTTP_SECONDS) as response:  # noqa: S310
            found = json.load(response)
    except (OSError, ValueError) as error:
        raise SourceError(f"the old service does not answer: {error}") from error
    if not isinstance(found, list):
        raise SourceError(f"the old service answers {str(found)[:100]}")
    return found


def _own_answer(tag: str, moment: Moment, mode: str) -> list[list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(
            OWN_ANSWER,
            {"tag": tag, "major": moment.major, "minor": moment.minor, "inclusive": mode == Mode.DISCRETE},
        )
        [(text,)] = cursor.fetchall()
    return json.loads(text or "[]")  # type: ignore[no-any-return]


def _url_and_start(row: Sequence[Any]) -> tuple[Any, ...]:
    """The URL and the start of the IOV in a row of an answer. Older services send fewer columns."""
    return (row[1], *(row[4:6] if len(row) >= 8 else row[-4:-2]))


def _explain(
    copy: Copy, adopted: AdoptedTag, moment: Moment, differing: dict[str, tuple[str, str]], snapshot: Snapshot
) -> Verification:
    """Find out why answers over HTTP differ: a decision about the list, or its stored comb_iov.

    `differing` has the old and the new URL by payload type.
    """
    result = Verification()
    by_type: defaultdict[str, list[SourceList]] = defaultdict(list)
    for item in read_lists(snapshot, adopted.source_id):
        by_type[copy.decisions.name("payload type", item.payload_type or "")].append(item)
    asked = [item for name in differing for item in by_type[name]]
    found = summaries(snapshot, asked, copy.decisions)
    values = {"list_ids": [item.id for item in asked], "moment": moment.combined} | copy.decisions.parameters
    stored = {*snapshot.rows("source_stored_answers", values)}
    for name, (before, after) in differing.items():
        items = by_type[name]
        reasons = _reasons(copy, [found[item.id] for item in items])
        if len(items) > 1:
            reasons.append("two_lists")
        if (before,) == NOTHING:
            is_stored = not any(item.id == list_id for list_id, _ in stored for item in items)
        else:
            is_stored = any((item.id, before) in stored for item in items)
        if not is_stored:
            # The old service does not answer from these rows.
            reasons = []
        if reasons:
            result.explain(reasons)
        else:
            result.fail(f"{adopted.source_name}, {name} at {moment} over HTTP: {before} -> {after}")
    return result


def _reasons(copy: Copy, found: Sequence[Summary]) -> list[str]:
    return [kind for summary in found for kind in MOVING if summary.faults[kind] and _alters(copy, kind)]
