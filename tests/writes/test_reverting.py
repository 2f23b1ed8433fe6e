"""Reverting a global tag to a revision: its rows come back with their ids. tests/histories has everything else."""

import pytest

from cdb_rest.history.contents import find_past, iovs_of, past_lists
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.writes import global_tags, insertion, payload_iovs, payload_types
from cdb_rest.writes.reverting import revert_global_tag

pytestmark = pytest.mark.django_db(transaction=True)
KEY = ("payload_url", "checksum", "size", "extra", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end")


def insert(url, start, end=OPEN, kind="Gain", tag="tag"):
    """Insert a payload from one major to another; returns the new revision."""
    row = {
        "global_tag": tag,
        "payload_type": kind,
        "payload_url": url,
        "checksum": f"sum of {url}",
        "size": 7,
        "extra": "3",
        "major_iov": start,
        "minor_iov": 0,
        "major_iov_end": end,
        "minor_iov_end": OPEN if end == OPEN else 0,
        "since_only": False,
    }
    return insertion.insert_payloads(rows=[row]).revisions[tag]


def contents(tag="tag"):
    """The rows of a tag by payload type."""
    found = PayloadList.objects.filter(global_tag__name=tag).select_related("payload_type")
    return {one.payload_type.name: list(one.payload_iovs.order_by("comb_iov").values_list(*KEY)) for one in found}


def past_contents(revision, tag="tag"):
    """The same at a revision, as the history has it."""
    lists = past_lists(find_past(tag, AsOf(revision=revision)))
    return {one.payload_type: [tuple(row[name] for name in KEY) for row in iovs_of([one])] for one in lists}


def ids(kind="Gain", tag="tag"):
    """The ids of rows by URL and start."""
    rows = PayloadIOV.objects.filter(payload_list__global_tag__name=tag, payload_list__payload_type__name=kind)
    return {(url, start): iov_id for iov_id, url, start in rows.values_list("id", "payload_url", "major_iov")}


def revision(tag="tag"):
    return GlobalTag.objects.get(name=tag).revision


@pytest.fixture
def tag():
    """The tag `tag`; revision 2 has one list of the type Gain with two IOVs."""
    global_tags.create_global_tag(name="tag", status="unlocked")
    for name in ("Gain", "Noise"):
        payload_types.create_payload_type(name=name)
    insert("a", 0, 10)
    return insert("b", 10)


def test_rows_that_exchange_their_starts_come_back(tag):
    """The start of each row is taken by another one before, whatever the order."""
    payload_list = PayloadList.objects.get()
    insert("c", 20)
    insert("d", 30)
    wanted, expected, known = revision(), contents(), ids()
    iovs = {iov.payload_url: iov for iov in PayloadIOV.objects.filter(payload_list=payload_list)}
    # Each is attached again where the next one was.
    for url in "abcd":
        payload_iovs.delete_payload_iov(
            global_tag="tag",
            payload_type="Gain",
            start=Moment(iovs[url].major_iov, 0),
            end=Moment(iovs[url].major_iov_end, iovs[url].minor_iov_end),
        )
    for number, url in enumerate("bcda"):
        iov = PayloadIOV(payload_list=None, **{name: getattr(iovs[url], name) for name in KEY})
        iov.id, iov.major_iov, iov.major_iov_end, iov.minor_iov_end = iovs[url].id, number * 10, number * 10 + 10, 0
        iov.save(force_insert=True)
        payload_iovs.attach_payload_iov(payload_list=payload_list.name, iov_id=iov.id)
    assert sorted(ids().values()) == sorted(known.values()) and ids() != known
    revert_global_tag(name="tag", revision=wanted)
    assert contents() == expected == past_contents(revision())
    assert ids() == known
    assert not PayloadIOV.objects.filter(payload_list=None).exists()
