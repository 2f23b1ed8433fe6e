"""manage.py export_nopayloaddb: a database of this service as one of nopayloaddb, and back."""

from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from cdb_rest.models import ListedPayloadIOV, PayloadIOV, PayloadList
from tests.adopt.old_database import OldDatabase, combined
from tests.builders import make_statuses

pytestmark = pytest.mark.django_db(transaction=True)
HUGE, LARGEST = 1720000000, 2**63 - 1
MOMENTS = [(1, 0), (5, 0), (10, 0), (99, 0), (HUGE, 14), (HUGE, 15), (HUGE, LARGEST), (LARGEST, LARGEST)]
COLUMNS = """SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
    pg_get_expr(adbin, adrelid)
FROM pg_attribute JOIN pg_class AS class ON class.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0 AND relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname ~ '^[GP]' ORDER BY 1, 2"""
KEYS = """SELECT conrelid::regclass::text, contype, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1, 2, 3"""


def run(*arguments):
    """What a command prints."""
    call_command(*arguments, stdout=(out := StringIO()), stderr=StringIO())
    return out.getvalue()


def content():
    """The rows of lists without their ids, the detached rows, and the lists."""
    columns = [one.name for one in ListedPayloadIOV._meta.fields[1:] if one.name not in ("payload_list", "updated")]
    tag = [f"global_tag__{name}" for name in ("id", "name", "author", "created", "updated", "status__name")]
    listed = ListedPayloadIOV.objects.order_by("payload_list_id", "comb_iov").values_list("payload_list_id", *columns)
    detached = PayloadIOV.objects.filter(payload_list=None).order_by("id").values_list("id", *columns)
    lists = PayloadList.objects.order_by("id").values_list("id", "name", "created", "payload_type__name", *tag)
    return [*listed], [*detached], [*lists]


@pytest.fixture
def filled(api, build):
    """Tags, clones, detached objects and unusual values. Returns the greatest number in the name of a list."""
    tag = build.tag()
    gain, pedestal = build.list(tag), build.list(tag, "Pedestal")
    build.iov(gain, (1, 0), (5, 0), extra="7", size=5)
    build.iov(gain, (5, 0), url="tab\tnewline\nbackslash\\é", checksum="")
    build.iov(pedestal, (HUGE, 15), (HUGE, 16))
    build.iov(pedestal, (HUGE, LARGEST))
    api.post("cloneGlobalTag/tag/shared").ok()
    api.post("cloneGlobalTag/tag/written").ok()
    written = PayloadList.objects.get(global_tag__name="written", payload_type__name="Gain")
    # After the second one, `shared` has rows that are only in the history.
    for payload_list, major in ((written, 99), (gain, 3)):
        new = build.iov(None, (major, 0)).id
        api.put("piov_attach", {"payload_list": payload_list.name, "piov_id": new}).ok()
    api.put("gt_change_status/tag/frozen").ok()
    build.tag("empty", "locked")
    build.iov(build.list(None, "Noise"), (10, 0))
    build.iov(None, (HUGE, 1), (0, 0))
    # As after an adoption that had to give new ids.
    PayloadList.objects.filter(id=pedestal.id).update(name=f"Pedestal_{pedestal.id + 50}")
    return pedestal.id + 50


@pytest.mark.parametrize(("variant", "ids"), [("V8", "serial"), ("V9", "identity")])
def test_an_export_is_a_database_of_nopayloaddb_and_can_be_adopted(api, url, scratch, filled, variant, ids):
    before = content()
    printed = run("export_nopayloaddb", url, "--variant", variant, "--ids", ids)
    assert f"Wrote 4 global tags, 7 payload lists and {len(before[0] + before[1])} IOVs" in printed
    assert ("those of 3 IOVs" in printed) == (variant == "V8")
    old = OldDatabase(scratch, variant, identity=ids == "identity")
    assert old.execute("SELECT max(comb_iov) FROM {PayloadIOV}") == [(combined(HUGE, LARGEST),)]
    stored = dict(old.execute("SELECT id, payload_url FROM {PayloadIOV}"))
    kept = dict(PayloadIOV.objects.values_list("id", "payload_url"))
    assert len(stored) == len(before[0] + before[1]) and kept.items() <= stored.items()
    for tag in ("tag", "shared", "written"):
        for major, minor in MOMENTS:
            ours = api.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV={minor}").ok()
            assert sorted(stored[id] for id in old.lookup(tag, major, minor).values()) == sorted(row[1] for row in ours)
    schema = old.execute(COLUMNS), old.execute(KEYS)
    call_command("flush", interactive=False)
    make_statuses()
    run("adopt", url, "--copy", "--mode", settings.CDB_IOV_MODE, "--frozen-as", "frozen")
    assert content()[variant == "V8" :] == before[variant == "V8" :]
    # The old program can write: the ids of new objects are free, and so is the name of a new list.
    assert old.payload_list("Pedestal") == filled + 1
    assert old.iov(None, (1, 0)) == max(stored) + 1
    old.wipe()
    old.create()
    assert schema == (old.execute(COLUMNS), old.execute(KEYS))


def test_only_some_tags(url, scratch, filled):
    run("export_nopayloaddb", url, "--tag", "shared", "empty")
    for table, names in (("GlobalTag", "empty shared"), ("PayloadType", "Gain Pedestal")):
        found = OldDatabase(scratch).execute(f"SELECT string_agg(name, ' ' ORDER BY name) FROM {{{table}}}")  # noqa: S608
        assert found == [(names,)]
    assert OldDatabase(scratch).execute("SELECT count(*), count(payload_list_id) FROM {PayloadIOV}") == [(4, 4)]


def test_what_cannot_be_exported_changes_nothing(url, scratch, tmp_path):
    (file := tmp_path / "url").write_text(closed := "postgresql://nobody:secret@127.0.0.1:1/x")
    for arguments, message in (
        ([url, "--tag", "missing"], "missing"),
        ([closed], "the URL has a password"),
        ([f"@{file}"], "the target: connection to server"),
        ([url], "the target is not empty: it has django.other"),
    ):
        if "empty" in message:
            OldDatabase(scratch).execute("CREATE SCHEMA django; CREATE VIEW django.other AS SELECT 1")
        with pytest.raises(CommandError, match=message) as error:
            run("export_nopayloaddb", *arguments)
        assert "secret" not in str(error.value) and "\n" not in str(error.value)
        assert OldDatabase(scratch).execute("SELECT to_regclass('{GlobalTag}')") == [(None,)]
