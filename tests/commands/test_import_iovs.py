"""manage.py import_iovs: exports come back the same, and what is wrong with a file is named by its line."""

import io
import json
import random
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cdb_rest.domain.errors import CdbError
from cdb_rest.domain.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from cdb_rest.lookup import lateral
from cdb_rest.lookup.question import Question
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList, PayloadType
from cdb_rest.services import imports
from cdb_rest.services.counts import find_wrong_counts
from cdb_rest.services.export import Form, Selection, export
from cdb_rest.services.global_tags import change_status, create_global_tag
from cdb_rest.services.insertion import insert_payloads
from cdb_rest.services.repair import find_faults
from tests.builders import Builder, make_statuses

pytestmark = pytest.mark.django_db(transaction=True)

HEADER = "payload_type,payload_url,checksum,size,major_iov,minor_iov,major_iov_end,minor_iov_end,revision\n"
EVER = Interval(Moment(0, 0), AFTER_ALL)


def exported(tag):
    return b"".join(export(Selection(tag, None, EVER), Form.CSV))


def run(content, *arguments, tag="tag"):
    """What the command prints. `content` is the file's, in bytes or text."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "file.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = io.StringIO()
        call_command("import_iovs", str(file), "--global-tag", tag, *arguments, stdout=out)
        return out.getvalue()


def refusal(content, *arguments, **options):
    """The one line that the command ends with; it stores nothing."""
    before = state()
    with pytest.raises(CommandError) as raised:
        run(content, *arguments, **options)
    assert state() == before
    assert "\n" not in str(raised.value)
    return str(raised.value)


def state():
    kinds = (GlobalTag, PayloadType, PayloadList, PayloadIOV, GlobalTagChange)
    return [sorted(kind.objects.values_list()) for kind in kinds]


def answers(tag, moments, mode):
    """Which payloads are valid at these moments, and the rows that lookups answer without asking for that."""
    return [
        [[row[:4] + row[8:] for row in _rows(Question(tag, Moment(*moment), only_valid, False, mode))]
         for only_valid in (True, False)]
        for moment in moments
    ]  # fmt: skip


def _rows(question):
    return json.loads(lateral.answer(question))


def test_a_tag_comes_back_under_another_name(build):
    tag = build.tag("source")
    gain = build.list(tag, "Gain")
    build.iov(gain, (1, 0), (2, 0), url='quoted "a", b\nc', checksum="", extra=None)
    build.iov(gain, (5, 0), extra="007")
    build.iov(build.list(tag, "Ärger"), (0, 0), (0, 1), url="\\N")
    content = exported("source")
    said = run(content, "--comment", "moved here", tag="target")
    assert said.startswith(
        "Imported 3 IOVs into new global tag target, unlocked; new payload types: 0, new payload lists: 2"
    )
    assert exported("target") == content
    made = GlobalTag.objects.get(name="target")
    assert (made.status.name, made.payload_iov_count, made.payload_lists_count) == ("unlocked", 3, 2)
    assert find_wrong_counts() == [] and find_faults(global_tag="target") == []
    changes = GlobalTagChange.objects.filter(global_tag="target").order_by("revision")
    assert [(one.action, one.payload_iovs_after, one.comment) for one in changes] == [
        ("create", 0, "moved here"), ("bulk", 2, "moved here"), ("bulk", 1, "moved here"),
    ]  # fmt: skip
    assert made.revision == 3 and changes[1].actor.startswith("import_iovs (")
    lists = {one.payload_type.name: one.name for one in PayloadList.objects.filter(global_tag=made)}
    assert changes[1].after["payload_lists"] == {"Gain": lists["Gain"]}
    assert [row["revision"] for row in changes[1].after["payload_iovs"]] == [None, "007"]


def test_types_are_made_where_missing_and_a_dry_run_makes_nothing():
    make_statuses()
    content = HEADER + "New,a,,0,1,0,2,0,\nNew,b,,0,2,0,3,0,\n"
    before = state()
    assert run(content, "--dry-run").startswith(
        "Would import 2 IOVs into new global tag tag, unlocked; new payload types: 1"
    )
    assert state() == before
    assert "new payload types: 1, new payload lists: 1" in run(content)
    assert exported("tag") == (HEADER + 'New,a,"",0,1,0,2,0,\nNew,b,"",0,2,0,3,0,\n').encode()


def test_standard_input_and_an_empty_export(build, monkeypatch):
    build.tag("source")
    content = exported("source")
    assert content.decode() == HEADER
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    call_command("import_iovs", "-", "--global-tag", "target", stdout=io.StringIO())
    assert exported("target") == content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Line 1: "),
        ("a,b\n", "Line 1: "),
        (HEADER.replace("size", "bytes"), "Line 1: "),
        (HEADER + "T,u,,0,1,0,2,0,\nT,u,,0,x,0,9,0,\n", "Line 3: major_iov: invalid input syntax"),
        (HEADER + "T,u,,0,1,0,2,0\n", "Line 2: missing data"),
        (HEADER + "T,u,,0,1,0,2,0,,\n", "Line 2: extra data"),
        (HEADER + "T,u,,,1,0,2,0,\n", "Line 2: size is missing."),
        (HEADER + ",u,,0,1,0,2,0,\n", "Line 2: payload_type is missing."),
        (HEADER + '"",u,,0,1,0,2,0,\n', "Line 2: payload_type is empty."),
        (HEADER + 'T,"",,0,1,0,2,0,\n', "Line 2: payload_url is empty."),
        (HEADER + "T/U,u,,0,1,0,2,0,\n", "Line 2: payload_type: A name must not contain"),
        (HEADER + f"T,{'u' * 256},,0,1,0,2,0,\n", "Line 2: payload_url: value too long"),
        (HEADER + "T,u,,-1,1,0,2,0,\n", "Line 2: moments and sizes must not be negative."),
        (HEADER + f"T,u,,0,1,0,2,{2**63},\n", "Line 2: minor_iov_end: value"),
        (HEADER + "T,u,,0,1,0,2,0,1a\n", "Line 2: revision is no number"),
        (HEADER + f"T,u,,0,1,0,2,0,{2**63}\n", "Line 2: revision is no number"),
        (HEADER + "T,u,,0,1,0,2,0,\nT,v,,0,3,0,3,0,\n", "Line 3: the IOV from (3, 0) to (3, 0) is valid at no moment."),
        (HEADER + "T,u,,0,1,0,2,0,\nS,u,,0,1,0,2,0,\nT,v,,0,1,0,3,0,\n", "Line 4: line 2 has the same payload type"),
        ((HEADER + "T,u,,0,1,0,2,0,\n").encode() + b"T,\xff,,0,3,0,4,0,\n", "Line 3: invalid byte sequence"),
        (HEADER + 'T,"u,,0,1,0,2,0,\n', "Line 3: unterminated CSV quoted field"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_place(build, content, said):
    build.tag()
    assert refusal(content).startswith(said)
    assert refusal(content, tag="new").startswith(said)


def test_other_errors_of_the_user_are_one_line(tmp_path):
    with pytest.raises(CommandError, match=r"can't read .*: No such file"):
        call_command("import_iovs", str(tmp_path / "none.csv"), "--global-tag", "tag")
    with pytest.raises(CommandError, match=r"can't read .*: Is a directory"):
        call_command("import_iovs", str(tmp_path), "--global-tag", "tag")
    for name in ("", "a/b", "x" * 81):
        assert "The name of a global tag" in refusal(HEADER, tag=name)
    assert "A comment has at most" in refusal(HEADER, "--comment", "x" * 1001)


def test_the_status_of_the_tag_decides_as_for_bulk(build):
    tag = build.tag()
    payload_list = build.list(tag, "Gain")
    build.iov(payload_list, (5, 0), (7, 0), url="stored")
    change_status(name="tag", status="locked")
    assert refusal(HEADER + "Gain,fits,,0,1,0,5,0,\nGain,clashes,,0,6,0,8,0,\n").startswith(
        "Line 3: The interval [(6, 0)"
    )
    assert refusal(HEADER + "Gain,same,,0,5,0,7,0,\n").startswith("Line 2: payload IOV ")
    run(HEADER + "Gain,fits,,0,1,0,5,0,\nOther,new,,0,1,0,5,0,\n")
    change_status(name="tag", status="frozen")
    assert refusal(HEADER + "Gain,late,,0,8,0,9,0,\n").startswith("Global tag tag is frozen")


def test_rows_go_into_a_list_that_has_some_by_the_interval_rule(build):
    payload_list = build.list(build.tag(), "Gain")
    build.iov(payload_list, (0, 0), (10, 0), url="stored")
    said = run(HEADER + f"Gain,until next,,0,1,0,{OPEN},{OPEN},\nGain,inside,,0,4,0,6,0,\n")
    assert "into global tag tag; new payload types: 0, new payload lists: 0" in said
    rows = PayloadIOV.objects.filter(payload_list=payload_list).order_by("comb_iov")
    assert [(row.payload_url, row.major_iov, row.major_iov_end) for row in rows] == [
        ("stored", 0, 1), ("until next", 1, OPEN), ("inside", 4, 6), ("stored", 6, 10),
    ]  # fmt: skip
    assert find_wrong_counts() == [] and find_faults(global_tag="tag") == []


NUMBERS = st.one_of(st.integers(0, 5), st.sampled_from([10**9, 2**53 + 1, OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
TYPES = st.sampled_from(["Gain", "alpha", "Élan"])
WRITES = st.lists(st.tuples(TYPES, MOMENTS, MOMENTS, st.sampled_from(["closed", "open", "next"])), max_size=15)
PATHS = st.sampled_from([(imports.ROWS_AT_ONCE, imports.ROWS_OF_EMPTY_LIST), (1, 0), (3, 0), (100, 0)])
PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def either_way(monkeypatch, settings):
    """Sets the mode and which way rows take: all of an empty list by one statement, or some at once by the rule."""

    def choose(mode, sizes):
        settings.CDB_IOV_MODE = mode.value
        monkeypatch.setattr(imports, "ROWS_AT_ONCE", sizes[0])
        monkeypatch.setattr(imports, "ROWS_OF_EMPTY_LIST", sizes[1])

    yield choose


def forget_everything():
    for kind in (PayloadIOV, PayloadList, GlobalTag, GlobalTagChange, PayloadType):
        kind.objects.all().delete()


def interesting(rows):
    found = {(0, 0), (OPEN, OPEN)}
    for start, end in rows:
        for major, minor in (start, end):
            found |= {(major, max(minor - 1, 0)), (major, minor), (major, min(minor + 1, OPEN))}
    return sorted(found)


# An open row before a closed one, which in the other order would be split by it.
OPEN_BEFORE_CLOSED = [("Gain", Moment(3, 0), Moment(4, 0), "closed"), ("Gain", Moment(1, 0), Moment(2, 0), "next")]


@example(writes=OPEN_BEFORE_CLOSED, mode=Mode.CONTINUOUS, sizes=(100, 0), extra=[])
@example(writes=OPEN_BEFORE_CLOSED, mode=Mode.DISCRETE, sizes=(1, 0), extra=[])
@PROPERTY
@given(writes=WRITES, mode=st.sampled_from(Mode), sizes=PATHS, extra=st.lists(MOMENTS, max_size=5))
def test_what_the_service_wrote_comes_back_byte_for_byte(either_way, writes, mode, sizes, extra):
    either_way(mode, sizes)
    make_statuses()
    for kind in ("Gain", "alpha", "Élan"):
        PayloadType.objects.create(name=kind)
    create_global_tag(name="source", status="unlocked")
    for number, (kind, start, end, until) in enumerate(writes):
        end = end if until == "closed" else Moment(OPEN, OPEN)
        row = {
            "global_tag": "source", "payload_type": kind, "payload_url": f"{number}", "checksum": "" if number % 2 else "a",
            "size": number, "extra": None if number % 3 else "0", "since_only": until == "next",
            "major_iov": start.major, "minor_iov": start.minor, "major_iov_end": end.major, "minor_iov_end": end.minor,
        }  # fmt: skip
        try:
            insert_payloads(rows=[row])
        except CdbError:
            continue
    try:
        content = exported("source")
        run(content, tag="target")
        assert exported("target") == content
        moments = [*interesting((start, end) for _, start, end, _ in writes), *extra]
        assert answers("target", moments, mode) == answers("source", moments, mode)
        assert find_wrong_counts() == [] and find_faults(global_tag="target") == []
    finally:
        forget_everything()


ROWS = st.lists(
    st.tuples(MOMENTS, st.one_of(MOMENTS, st.just(Moment(OPEN, OPEN)))), max_size=7, unique_by=lambda row: row[0]
)


@PROPERTY
@given(rows=ROWS, mode=st.sampled_from(Mode), sizes=PATHS, seed=st.integers(0, 9))
def test_rows_from_elsewhere_that_overrun_each_other_stay_valid_where_they_were(either_way, rows, mode, sizes, seed):
    either_way(mode, sizes)
    make_statuses()
    build = Builder()
    payload_list = build.list(build.tag("source"))
    rows = [row for row in rows if not Interval.from_wire(*row, mode).is_empty]
    for start, end in rows:
        build.iov(payload_list, start, end, url=f"{start}")
    try:
        header, *lines = exported("source").splitlines(keepends=True)
        random.Random(seed).shuffle(lines)
        run(b"".join([header, *lines]), tag="target")
        moments = interesting(rows)
        assert answers("target", moments, mode) == answers("source", moments, mode)
        assert find_faults(global_tag="target") == []
        content = exported("target")
        run(content, tag="again")
        assert exported("again") == content
    finally:
        forget_everything()
