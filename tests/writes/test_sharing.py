"""Writes to clones that share rows with their base: which ones copy rows, and what stays as it is."""

import pytest

from cdb_rest.maintenance.repair import find_incorrect_counts
from cdb_rest.models import ListedPayloadIOV, PayloadIOV, PayloadList
from cdb_rest.rules.errors import TagLockedError
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.writes import bulk, global_tags, insertion, payload_iovs, payload_types
from cdb_rest.writes.reverting import revert_global_tag
from cdb_rest.writes.transactions import roll_back

pytestmark = pytest.mark.django_db(transaction=True)


def row(tag, kind, url, start, end=OPEN):
    """A row of an insertion."""
    minor_end = OPEN if end == OPEN else 0
    place = {"global_tag": tag, "payload_type": kind, "since_only": False, "checksum": "", "size": 0}
    return place | {
        "payload_url": url,
        "major_iov": start,
        "minor_iov": 0,
        "major_iov_end": end,
        "minor_iov_end": minor_end,
    }


def insert(*arguments):
    insertion.insert_payloads(rows=[row(*arguments)])


def bulk_row(tag, kind, url, start, end):
    columns = row(tag, kind, url, start, end)
    name = PayloadList.objects.get(global_tag__name=tag, payload_type__name=kind).name
    return {name: columns[name] for name in columns if name not in ("global_tag", "payload_type", "since_only")} | {
        "payload_list": name
    }


def rows(tag):
    """URLs and starts of a tag's rows by payload type."""
    found = ListedPayloadIOV.objects.filter(payload_list__global_tag__name=tag).order_by("comb_iov")
    result = {}
    for kind, url, start in found.values_list("payload_list__payload_type__name", "payload_url", "major_iov"):
        result.setdefault(kind, []).append((url, start))
    return result


def sharing(tag):
    """The payload types whose lists share rows."""
    lists = PayloadList.objects.filter(global_tag__name=tag, base_list_id__isnull=False)
    return set(lists.values_list("payload_type__name", flat=True))


@pytest.fixture
def clone():
    """The tag `base` with two payload types, and its clone `copy`."""
    global_tags.create_global_tag(name="base", status="unlocked")
    for kind in ("Gain", "Noise"):
        payload_types.create_payload_type(name=kind)
        for start in (0, 10, 20):
            insert("base", kind, f"{kind}/{start}", start)
    return global_tags.clone_global_tag(source="base", target="copy")


@pytest.mark.parametrize(
    "write",
    [
        lambda tag: insert(tag, "Gain", "new", 15, 17),
        lambda tag: bulk.insert_payload_iovs(rows=[bulk_row(tag, "Gain", "new", 15, 17)]),
        lambda tag: payload_iovs.attach_payload_iov(
            payload_list=PayloadList.objects.get(global_tag__name=tag, payload_type__name="Gain").name,
            iov_id=PayloadIOV.objects.create(
                payload_url="new", major_iov=15, minor_iov=0, major_iov_end=17, minor_iov_end=0
            ).id,
        ),
    ],
    ids=["insert", "bulk", "attach"],
)
def test_the_first_write_copies_the_rows_of_its_list_only(clone, write):
    before = rows("base")
    write("copy")
    gain = [("Gain/0", 0), ("Gain/10", 10), ("new", 15), ("Gain/10", 17), ("Gain/20", 20)]
    assert rows("copy") == before | {"Gain": gain}
    assert rows("base") == before
    assert sharing("copy") == {"Noise"}
    assert find_incorrect_counts() == []


def test_what_changes_nothing_copies_nothing(clone):
    insert("copy", "Gain", "Gain/10", 10, 20)
    assert roll_back(lambda: insertion.insert_payloads(rows=[row("copy", "Gain", "new", 15, 17)])) is not None
    # Of two lists in a request, only one changes.
    bulk.insert_payload_iovs(
        rows=[bulk_row("copy", "Gain", "Gain/10", 12, 14), bulk_row("copy", "Noise", "new", 12, 14)]
    )
    assert sharing("copy") == {"Gain"}
    global_tags.change_status(name="copy", status="locked")
    with pytest.raises(TagLockedError):
        global_tags.delete_global_tag(name="copy")
    assert sharing("copy") == {"Gain"}


def test_a_reversion_of_a_clone_leaves_detached_rows_of_the_base_alone(clone):
    insert("base", "Gain", "new", 10, 20)
    detached = PayloadIOV.objects.get(payload_url="Gain/10", payload_list=None)
    payload_iovs.delete_payload_iov(global_tag="copy", payload_type="Gain", start=Moment(10, 0), end=Moment(20, 0))
    revert_global_tag(name="copy", revision=clone.revision)
    assert rows("copy")["Gain"][1] == ("Gain/10", 10)
    detached.refresh_from_db()
    assert detached.payload_list is None and detached.left_tag == "base"
