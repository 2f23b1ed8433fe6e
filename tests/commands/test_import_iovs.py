"""manage.py import_iovs: an exported file gives the same rows, and an error names the line of the file."""

import io
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.exports.export import Form, Selection, export
from cdb_rest.maintenance.repair import find_faults, find_incorrect_counts
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment
from cdb_rest.writes import import_file, imports
from tests.builders import make_statuses
from tests.conftest import Api

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


pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
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
    assert find_incorrect_counts() == [] and find_faults(global_tag="target") == []
    changes = GlobalTagChange.objects.filter(global_tag="target").order_by("revision")
    assert [(one.action, one.payload_iovs_after, one.comment) for one in changes] == [
        ("create", 0, "moved here"),
        ("bulk", 3, "moved here"),
    ]
    assert made.revision == 2 and changes[1].actor.startswith("import_iovs (")
    lists = {one.payload_type.name: one.name for one in PayloadList.objects.filter(global_tag=made)}
    change = Api().get("global-tags/target/changes/2").ok()
    assert change["after"]["payload_lists"] == lists
    assert [row["revision"] for row in change["after"]["payload_iovs"]] == [None, "007", None]


@pytest.mark.django_db(transaction=True)
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


@pytest.mark.django_db(transaction=True)
def test_standard_input_and_an_empty_export(build, monkeypatch):
    build.tag("source")
    content = exported("source")
    assert content.decode() == HEADER
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    call_command("import_iovs", "-", "--global-tag", "target", stdout=io.StringIO())
    assert exported("target") == content


BROKEN = 'T,"a\nb\nc",,0,1,0,2,0,\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Line 1: "),
        ("a,b\n", "Line 1: "),
        (HEADER.replace("size", "bytes"), "Line 1: "),
        (
            HEADER + "T,u,,0,1,0,2,0,\nT,u,,0,x,0,9,0,\n",
            "Line 3: major_iov is no number from 0 to 9223372036854775807.",
        ),
        (HEADER + "T,u,,0,1,0,2,0\n", "Line 2: missing data"),
        (HEADER + "T,u,,0,1,0,2,0,,\n", "Line 2: extra data"),
        (HEADER + "T,u,,,1,0,2,0,\n", "Line 2: size is missing."),
        (HEADER + ",u,,0,1,0,2,0,\n", "Line 2: payload_type is missing."),
        (HEADER + '"",u,,0,1,0,2,0,\n', "Line 2: payload_type is empty."),
        (HEADER + 'T,"",,0,1,0,2,0,\n', "Line 2: payload_url is empty."),
        (HEADER + "T/U,u,,0,1,0,2,0,\n", "Line 2: payload_type: A name must not contain"),
        (HEADER + f"T,{'u' * 256},,0,1,0,2,0,\n", "Line 2: payload_url has more than 255 characters."),
        (HEADER + "T,u,,-1,1,0,2,0,\n", "Line 2: size is no number from 0 to 9223372036854775807."),
        (HEADER + f"T,u,,0,1,0,2,{2**63},\n", "Line 2: minor_iov_end is no number from 0 to 9223372036854775807."),
        (HEADER + "T,u,,0,1,0,0x2,0,\n", "Line 2: major_iov_end is no number from 0 to 9223372036854775807."),
        (HEADER + "T,u,,0, 1 ,0,2,0,\n", "Line 2: major_iov is no number from 0 to 9223372036854775807."),
        (HEADER + "T,u,,0,1,1_0,2,0,\n", "Line 2: minor_iov is no number from 0 to 9223372036854775807."),
        (HEADER + "T,u,,0,1,0,2,0,1 \n", "Line 2: revision is no number"),
        (HEADER + "T,u,,0,1,0,2,0,00000000000000000001\n", "Line 2: revision is no number"),
        (HEADER + f"T,{'u' * 255}  ,,0,1,0,2,0,\n", "Line 2: payload_url has more than 255 characters."),
        (HEADER + f"T,u,{'c' * 255} ,0,1,0,2,0,\n", "Line 2: checksum has more than 255 characters."),
        (HEADER + f"{'T' * 80} ,u,,0,1,0,2,0,\n", "Line 2: payload_type has more than 80 characters."),
        (HEADER + "T ,u,,0,1,0,2,0,\n", "Line 2: payload_type: A name must not contain"),
        (HEADER + "T,u,,0,1,0,2,0,1a\n", "Line 2: revision is no number"),
        (HEADER + f"T,u,,0,1,0,2,0,{2**63}\n", "Line 2: revision is no number"),
        (HEADER + "T,u,,0,1,0,2,0,\nT,v,,0,3,0,3,0,\n", "Line 3: the IOV from (3, 0) to (3, 0) is empty."),
        (HEADER + "T,u,,0,1,0,2,0,\nS,u,,0,1,0,2,0,\nT,v,,0,1,0,3,0,\n", "Line 4: line 2 has the same payload type"),
        # What is wrong first is what is named, whichever payload type it is of; line breaks in quotes begin lines, too.
        (HEADER + "Z,u,,0,5,0,3,0,\nA,u,,0,5,0,3,0,\n", "Line 2: the IOV from (5, 0)"),
        (HEADER + "Z/,u,,0,5,0,6,0,\nA,u,,0,5,0,3,0,\n", "Line 2: payload_type:"),
        (HEADER + BROKEN + "T,u,,0,1,0,9,0,\n", "Line 5: line 4 has the same payload type"),
        (HEADER + BROKEN + "T,u,,0,x,0,9,0,\n", "Line 5: major_iov is no number"),
        (HEADER + BROKEN + 'T/,"a\nb","c\nd",0,1,0,9,0,\n', "Line 7: payload_type:"),
        (HEADER + "T,u,,0,1,0,2,0,73", "The file ends in the middle of a line; was it cut off?"),
        (HEADER + "T,u,,0,1,0,2,0,73\nT,u,,0,1,0,2,9", "The file ends in the middle of a line"),
        (HEADER.strip(), "The file ends in the middle of a line"),
        ((HEADER + "T,u,,0,1,0,2,0,\n").encode() + b"T,\xff,,0,3,0,4,0,\n", "Line 3: invalid byte sequence"),
        (HEADER + 'T,"u,,0,1,0,2,0,\n', "Line 3: unterminated CSV quoted field"),
    ],
)
def test_an_invalid_file_is_one_line_that_names_the_place(build, content, said):
    build.tag()
    assert refusal(content).startswith(said)
    assert refusal(content, tag="new").startswith(said)


def test_the_line_is_found_in_whatever_language_the_database_speaks():
    diagnosis = SimpleNamespace(
        context="COPY cdb_import_file, Zeile 12, Spalte size: »3«", message_primary="fehlende Daten", sqlstate="22P04"
    )
    assert import_file._message(diagnosis) == "Line 12: fehlende Daten."


@pytest.mark.django_db(transaction=True)
def test_a_byte_order_mark_is_skipped():
    make_statuses()
    run(b"\xef\xbb\xbf" + HEADER.encode() + b"T,u,,0,1,0,2,0,\n")
    assert exported("tag") == (HEADER + 'T,u,"",0,1,0,2,0,\n').encode()


@pytest.mark.django_db(transaction=True)
def test_rows_are_inserted_in_batches_as_one_change(build, monkeypatch):
    build.iov(build.list(build.tag(), "long"), (9, 0))
    monkeypatch.setattr(imports, "ROWS_AT_ONCE", 2)
    short = "".join(f"short,u,,0,{n},0,{n + 1},0,\n" for n in range(3))
    run(HEADER + short + short.replace("short,u", f"long,{'u' * 255}"))
    [change] = GlobalTagChange.objects.filter(action="bulk")
    assert (change.payload_iovs_before, change.payload_iovs_after) == (0, 6)


def test_other_errors_of_the_user_are_one_line(tmp_path):
    with pytest.raises(CommandError, match=r"can't read .*: No such file"):
        call_command("import_iovs", str(tmp_path / "none.csv"), "--global-tag", "tag")
    with pytest.raises(CommandError, match=r"can't read .*: Is a directory"):
        call_command("import_iovs", str(tmp_path), "--global-tag", "tag")
    for name in ("", "a/b", "x" * 81):
        assert refusal(HEADER, tag=name).startswith("--global-tag must have 1 to 80 characters. ")
    assert "--comment must have at most 1,000 characters (got 1,001)" in refusal(HEADER, "--comment", "x" * 1001)
