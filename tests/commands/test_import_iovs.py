"""What only the command `import_iovs` has, and its options."""

import io
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from cdb_rest.exports.export import Form, Selection, export
from cdb_rest.maintenance.repair import find_faults, find_incorrect_counts
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Moment
from cdb_rest.writes import imports
from tests.conftest import Api, ServiceClient
from tests.imports import ways
from tests.imports.ways import post, rows, valid

HEADER = "payload_type,payload_url,checksum,size,major_iov,minor_iov,major_iov_end,minor_iov_end,revision\n"
EXPORTED = HEADER.replace("revision", "revision,mode")
EVER = Interval(Moment(0, 0), AFTER_ALL)
SHORT = "payload_type,payload_url,since,until\n"

pytestmark = pytest.mark.django_db(transaction=True)


def exported(tag, form=Form.CSV):
    return b"".join(export(Selection(tag, (), EVER), form))


def run(content, *arguments, tag="tag"):
    """What the command prints. `content` is the file's, in bytes or text."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "file.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = io.StringIO()
        call_command("import_iovs", str(file), f"--global-tag={tag}", *arguments, stdout=out)
        return out.getvalue()


def refusal(content, *arguments, **options):
    """What the command ends with; it stores nothing."""
    before = state()
    with pytest.raises(CommandError) as raised:
        run(content, *arguments, **options)
    assert state() == before
    return str(raised.value)


def state():
    kinds = (GlobalTag, PayloadType, PayloadList, PayloadIOV, GlobalTagChange)
    return [sorted(map(str, kind.objects.values_list())) for kind in kinds]


def by_command(content, *arguments):
    try:
        run(content, "--confirm", *arguments)
    except CommandError as error:
        return str(error)
    return valid()


def by_api(content, *arguments):
    query = "confirm=1&open_hides_later=1" if "--open-hides-later" in arguments else "confirm=1"
    answer = post(content, query)
    return valid() if answer.status == 200 else answer.json["detail"]


def by_page(content, *arguments):
    ways.by_page(content, confirm="1", **({"open_hides_later": "1"} if arguments else {}))
    return valid()


@pytest.fixture
def tag(build):
    build.list(build.tag(), "Gain")


# Rows that are stored before, the file, and what is there then. tests/imports has more without options.
LISTS = {
    "an open end hides nothing": ("a1-O c8-O", rows("b,5,open"), (), "a1-O b5-O c8-O"),
    "unless it should": ("a1-O c8-O", rows("b,5,open"), ("--open-hides-later",), "a1-5 b5-O"),
    "or up to the next row of the file": ("a1-O c8-O", rows("b,5,open", "d,9,next"), ("--open-hides-later",), "a1-5 b5-9 d9-O"),
    "the same file with a row appended": ("a1-O b5-6", rows("a,1,", "b,5,6", "c,8,"), (), "a1-O b5-6 c8-O"),
}  # fmt: skip


@pytest.mark.parametrize("way", [by_command, by_api, by_page])
@pytest.mark.parametrize("case", LISTS)
def test_a_file_is_placed_in_the_same_way_everywhere(stored, way, case):
    before, content, arguments, expected = LISTS[case]
    stored(before)
    assert way(content, *arguments) == expected


def test_rows_in_order_replace_parts_of_earlier_ones(tag):
    run(rows("a,1,9", "b,3,4"), "--in-order")
    assert valid() == "a1-3 b3-4 a4-9"


@pytest.mark.parametrize("status", ["locked", "frozen"])
def test_a_protected_tag_takes_the_same_file_again_and_nothing_else(stored, api, status):
    stored("a1-O b5-6")
    api.put(f"gt_change_status/tag/{status}").ok()
    for way in (by_command, by_api):
        assert way(rows("a,1,open", "b,5,6")) == "a1-O b5-6"
        for other in (rows("x,2,3"), rows("x,1,")):
            assert "Line 2: " in way(other)
    assert valid() == "a1-O b5-6"


@pytest.mark.parametrize("form", [*Form])
@pytest.mark.parametrize("mode", ["continuous", "discrete"])
def test_an_export_comes_back_exactly(build, settings, form, mode):
    settings.CDB_IOV_MODE = mode
    tag = build.tag("source")
    gain = build.list(tag, "Gain")
    build.iov(gain, (1, 0), (2, OPEN - 5), url='quoted "a", b', checksum="", extra=None)
    build.iov(gain, (5, 0), extra="007")
    build.iov(build.list(tag, "Ärger"), (0, 0), (0, 1), url="\\N")
    content = exported("source", form)
    said = run(content, "--comment", "moved here", "--create", "--confirm", tag="target")
    assert (
        "Imported 3 IOVs into global tag target; unchanged: 0; created global tag target, unlocked, 2 payload lists"
        in said
    )
    assert exported("target", form) == content
    # In the other mode, the same moments are valid.
    settings.CDB_IOV_MODE = "discrete" if mode == "continuous" else "continuous"
    run(content, "--create", "--confirm", tag="other")
    iov = PayloadIOV.objects.get(payload_list__global_tag__name="other", major_iov=1)
    assert iov.minor_iov_end == OPEN - 5 + (1 if mode == "discrete" else -1)


def test_an_import_is_in_the_change_log(build):
    run(rows("a,1,2", "b,2,3"), "--create", "--comment", "why")
    made = GlobalTag.objects.get(name="tag")
    assert (made.status.name, made.payload_iov_count, made.payload_lists_count) == ("unlocked", 2, 1)
    assert find_incorrect_counts() == [] and find_faults(global_tag="tag") == []
    changes = GlobalTagChange.objects.order_by("revision")
    assert [(one.action, one.payload_iovs_after, one.comment) for one in changes] == [
        ("create", 0, "why"),
        ("bulk", 2, "why"),
    ]
    assert changes[1].actor.startswith("import_iovs (")
    change = Api().get("global-tags/tag/changes/2").ok()
    assert [row["payload_url"] for row in change["after"]["payload_iovs"]] == ["a", "b"]


def test_nothing_is_created_unless_asked_for_and_each_name_is_shown(build):
    content = SHORT + "New,a,1,2\n"
    assert refusal(
        content
    ) == "There is no global tag tag. --create creates it. Nothing was stored." or "--create" in refusal(content)
    build.tag()
    assert "New" in refusal(content) and "--create creates it" in refusal(content)
    before = state()
    said = run(content, "--dry-run", "--create")
    assert (
        "Would import 1 IOVs into global tag tag; unchanged: 0; would create payload type New, 1 payload lists" in said
    )
    assert state() == before
    assert re.search(r"^New +1( +0){7} +1,0 +2,0$", said, re.MULTILINE)
    assert "created payload type New, 1 payload lists" in run(content, "--create")


def test_a_dry_run_says_what_would_change(stored):
    stored("a1-O b5-6 c8-O")
    said = run(rows("a,1,", "x,2,4", "y,5,9"), "--dry-run").splitlines()
    # a continues after x, and b is replaced. c starts where y ends.
    assert re.search(r"^Gain +2 +1 +0 +1 +1 +1 +0 +0 +2,0 +9,0$", said[-2]), said


def test_standard_input_and_a_file_without_rows(build, monkeypatch):
    before = state()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(EXPORTED.encode())))
    call_command("import_iovs", "-", "--global-tag", "target", "--create", stdout=io.StringIO())
    assert state() == before


def test_options_for_what_is_refused(tag):
    run(SHORT.replace("until", "note") + "Gain,a,1,2", "--ignore-columns", "--no-final-newline")
    assert valid() == "a1-O"


def test_a_file_of_another_mode_says_so_by_an_option(tag):
    run(rows("a,1,2"), "--mode", "discrete")
    assert valid() == "a1-2.1"


@pytest.mark.parametrize("rows_at_once", [2, 50_000])
def test_rows_are_inserted_in_batches_as_one_change(build, monkeypatch, rows_at_once):
    build.iov(build.list(build.tag(), "long"), (9, 0))
    PayloadType.objects.create(name="short")
    monkeypatch.setattr(imports, "ROWS_AT_ONCE", rows_at_once)
    short = "".join(f"short,u{n},{n},{n + 1}\n" for n in range(3))
    run(SHORT + short + short.replace("short", "long"), "--confirm")
    [change] = GlobalTagChange.objects.filter(action="bulk")
    assert (change.payload_iovs_before, change.payload_iovs_after) == (0, 6)
    assert find_faults() == []


def test_other_errors_of_the_user_are_one_line(tmp_path):
    with pytest.raises(CommandError, match=r"can't read .*: No such file"):
        call_command("import_iovs", str(tmp_path / "none.csv"), "--global-tag", "tag")
    with pytest.raises(CommandError, match=r"can't read .*: Is a directory"):
        call_command("import_iovs", str(tmp_path), "--global-tag", "tag")
    assert "--comment must have at most 1,000 characters (got 1,001)" in refusal(HEADER, "--comment", "x" * 1001)


@pytest.mark.parametrize("content", [b"nonsense\xff", (",".join("x" * 100_000) + "\n" + "Gain,u,1\n" * 1000).encode()])
def test_the_page_asks_for_permission_before_it_reads_a_file(tag, settings, content):
    settings.CDB_OPEN_WRITES = False
    client = ServiceClient(headers={"Accept": "text/html"})
    page = client.post("/tags/tag/insert", {"file": SimpleUploadedFile("rows", content)})
    assert page.status_code == 401 and "needs the role contributor" in page.content.decode()


def test_a_file_without_end_is_refused_at_once(tag):
    with pytest.raises(CommandError, match="A line has at most 65,536 bytes"):
        call_command("import_iovs", "/dev/zero", "--global-tag", "tag")
