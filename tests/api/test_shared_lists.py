"""A clone that shares the lists of its base answers every read like a copy with rows of its own."""

import json
import re
from urllib.parse import quote

import pytest

from cdb_rest.api.base import suggestions
from cdb_rest.api.urls import STRATEGY_ROUTES, view_of
from cdb_rest.models import (
    GlobalTag,
    GlobalTagChange,
    PayloadIOV,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
)
from cdb_rest.routes import ROUTES
from cdb_rest.writes.sharing import unshare
from cdb_rest.writes.transactions import write
from tests.api import helpers

pytestmark = pytest.mark.django_db(transaction=True)
BASE, CLONE, COPY = "base", "clone_tag", "copied_tag"
MOMENTS = [(0, 0), (3, 5), (10, 0), (12, 0), (25, 0), (2**63 - 1, 2**63 - 1)]
MOMENT = "gtName={tag}&majorIOV=3&minorIOV=5"
RANGE = "gtName={tag}&startMajorIOV=2&startMinorIOV=0&endMajorIOV=12&endMinorIOV=-1"
# The states of a tag, for routes that know the past.
STATES = ("", "rev={revision}", "at={time}")


def at(*queries):
    """Each query in each of the states."""
    return [f"?{query}&{state}" for query in queries for state in STATES]


# The requests of each route, by the name of its view: what follows its first path, or for a read by POST the body. {tag} is the
# tag, {base} the revision of the base of which it is a clone, {list} the name of one of its lists. A request with {revision} is
# sent for each revision of the tag, one with {time} for some.
REQUESTS = {
    "LookupView": [
        *(
            f"?gtName={{tag}}&majorIOV={major}&minorIOV={minor}&{form}&{state}"
            for major, minor in MOMENTS
            for form in ("window=1&shape=dict", "strict=1&window=1")
            for state in ("", "rev={revision}")
        ),
        *at(MOMENT, f"{MOMENT}&snap=1", f"{MOMENT}&payloadType=Gain"),
        f"?{MOMENT}&gtName=other&strict=1&window=1",
        "?gtName=other&majorIOV=3&minorIOV=5&gtName={tag}&strict=1",
        "?gtName={tag}x&majorIOV=3&minorIOV=5",
        *(
            {"gtName": "{tag}", "moments": MOMENTS, "strict": strict, "shape": shape} | state
            for strict, shape in ((True, "list"), (False, "dict"))
            for state in ({}, {"rev": "{revision}"}, {"at": "{time}"})
        ),
        {"gtName": ["{tag}", "other"], "moments": MOMENTS},
    ],
    "GlobalTagCollectionView": [""],
    "GlobalTagListView": ["", "?page=1&search={tag}&sort=name"],
    "GlobalTagByNameView": at("", "light"),
    "PayloadListsOfGlobalTagView": at(""),
    "GlobalTagLimitsView": [""],
    "GlobalTagDescriptionView": [""],
    "NestedGlobalTagListView": ["", "?page=1&search={tag}"],
    "GlobalTagByIdView": [""],
    "PayloadListListView": ["?page=1&global_tag={tag}", "?page=1&search={list}"],
    "PayloadListByNameView": [""],
    "PayloadListByIdView": [""],
    "PayloadIOVListView": [
        "?page=1&global_tag={tag}&sort=comb_iov&payload_list={list}",
        "?page=1&payload_list={list}&sort=comb_iov&order=desc&page_size=2",
        "?page=1&payload_list={list}&sort=comb_iov&search=gain",
    ],
    "PayloadIOVRangeView": at(RANGE, f"{RANGE}&payload_type=Gain"),
    "ValidPayloadIOVView": [
        *at("gtName={tag}", "gtName={tag}&since=3,5&until=11,0", "gtName={tag}&payload_type=Gain"),
        "?gtName={tag}&gtName=other", "?gtName={tag}&rev={revision}&gtName=other&rev=",
    ],
    "ChangeListView": ["", "?page=1&sort=revision"],
    "ChangeView": [""],
    "ExportView": at(
        "", "since=3,5&until=11,0", "format=jsonl&since=2,0&until=10,0&payload_type=Gain", "payload_type=Empty"
    ),
    "DifferencesView": [
        f"?{states}{summary}"
        for states in (
            "rev_b={base}", "rev_a={revision}&rev_b={base}", "at_a={time}&rev_b={base}", "rev_b={base}&base_a=other",
            "rev_b={base}&by=checksum&since=3,5&until=20,0",
        )
        for summary in ("", "&summary=1")
    ],
    "AffectedView": [
        {"to": {"tag": BASE, "rev": "{base}"}},
        {"to": {"tag": BASE, "rev": "{base}"}, "from_rev": "{revision}"},
        {"to": {"tag": BASE, "rev": "{base}"}, "from_rev": "{revision}", "moments": MOMENTS},
        {"from_at": "{time}"},
    ],
    "CoverageView": [*at("", "since=2,0&until=40,0&required=Gain,Absent", "payload_type=Noise"), "?base=other"],
    "UsesView": [
        f"?{payload}&removed={removed}"
        for payload in ("payload_url=gain/1", "url_prefix=gain", "checksum=c2", "url_prefix=n")
        for removed in (0, 1)
    ],
    "ExplanationView": [
        *at(MOMENT), f"?{MOMENT}&gtName=other",
        *(f"?gtName={{tag}}&majorIOV={major}&minorIOV={minor}&rev={{revision}}" for major, minor in MOMENTS),
    ],
    "IOVLookupView": [f"?{MOMENT}"],
    **{view_of(route).__name__: [f"?{MOMENT}", f"?{MOMENT}&strict=1"] for route in STRATEGY_ROUTES},
    # They take no tag and no list, and an IOV is a stored row, which is in one list.
    "GlobalTagStatusListView": [],
    "ChangeFeedView": [],
    "ChangeRequestListView": [],
    "ChangeRequestView": [],
    "PayloadTypeListView": [],
    "PayloadTypeDescriptionView": [],
    "PayloadTypeChangeListView": [],
    "PayloadIOVByIdView": [],
    "PublicSettingView": [],
    "WhoAmIView": [],
}  # fmt: skip
# The reads of all tags, with the member that has the name of the tag.
READS_OF_ALL = {
    "GlobalTagCollectionView": "name",
    "GlobalTagListView": "name",
    "NestedGlobalTagListView": "name",
    "UsesView": "global_tag",
}
HEADERS = ("CDB-Revision", "CDB-Valid-Since", "CDB-Valid-Until", "CDB-Canonical-Moment", "Cache-Control")
ROUTES_OF_READS = {
    view_of(route).__name__: route
    for route in ROUTES + STRATEGY_ROUTES
    if hasattr(view_of(route), "get") or route.reads_by_post
}


def test_every_read_is_in_the_table():
    assert REQUESTS.keys() == ROUTES_OF_READS.keys()


@write
def copy_rows(*, tag):
    """Give a clone rows of its own, as if they had been copied when it was made."""
    lists = list(PayloadList.objects.filter(global_tag__name=tag))
    assert unshare(lists)
    versions = PayloadListVersion.objects.filter(payload_list_id__in=[item.id for item in lists])
    assert versions.update(base_list_id=None, base_version=None)


@pytest.fixture
def write_rows(api):
    """Inserts rows (payload type, payload, since, until) into a tag, each as a change of its own."""

    def insert(tag, *rows):
        for kind, url, since, until in rows:
            row = {"global_tag": tag, "payload_type": kind, "payload_url": url, "checksum": f"c{since}", "size": 7}
            api.post("payload-iovs/insert", row | {"since": [since, 0], "until": until}).ok()

    return insert


@pytest.fixture
def scenario(api, write_rows, strategies_on):
    """A base with a past, a clone of it that shares its lists, and a clone that has copied them."""
    for kind in ("Gain", "Noise", "Late", "Empty", "Other"):
        api.post("pt", {"name": kind}).ok()
    for tag in (BASE, "other"):
        api.post("gt", {"name": tag, "status": "unlocked"}).ok()
    write_rows("other", ("Gain", "gain/other", 4, [11, 0]), ("Other", "other/1", 0, "open"))
    write_rows(
        BASE,
        ("Gain", "gain/1", 0, "next"),
        ("Gain", "gain/2", 10, "next"),
        ("Gain", "gain/split", 3, [4, 0]),
        ("Noise", "noise/1", 2, [8, 0]),
        ("Noise", "noise/2", 12, [20, 0]),
        ("Noise", "noise/gone", 25, [26, 0]),
        ("Late", "late/1", 100, "open"),
    )
    api.delete(f"deletePayloadIOV/{BASE}/Noise/25/0/26/0").ok()
    empty = api.post("pl", {"payload_type": "Empty"}).ok()["name"]
    api.put("pl_attach", {"global_tag": BASE, "payload_list": empty}).ok()
    for tag in (CLONE, COPY):
        api.post(f"cloneGlobalTag/{BASE}/{tag}").ok()
    copy_rows(tag=COPY)
    return GlobalTag.objects.get(name=BASE).revision


def requests_for(tag, base):
    """Method, path and body of all requests for a tag; by the view, the text in the table and the revision."""
    found = GlobalTag.objects.get(name=tag)
    gain = PayloadList.objects.get(global_tag=found, payload_type__name="Gain")
    parts = {"a": tag, "b": BASE, "tag_id": found.id, "list_id": gain.id}
    changes = list(GlobalTagChange.objects.filter(global_tag=tag).order_by("revision"))
    # Those in between were among the last ones after an earlier write.
    changes = changes[:2] + changes[2:][-4:]
    for view, requests in REQUESTS.items():
        route = ROUTES_OF_READS[view].paths[0]
        for request in requests:
            is_read_by_post = isinstance(request, dict)
            text = json.dumps(request) if is_read_by_post else request
            by_revision = re.search("{revision}|:revision>", route + text)
            # A time means a revision, in whatever list (tests/histories/test_past_reads.py).
            for change in changes if by_revision else changes[::3] if "{time}" in text else changes[:1]:
                names = parts | {"name": gain.name if "by-name" in route else tag, "revision": change.revision}
                time = change.created.isoformat()
                values = {"tag": tag, "base": base, "list": gain.name, "revision": change.revision}
                values["time"] = time if is_read_by_post else quote(time)
                path, filled = fill(route, r"<str:(\w+)>", names), fill(text, r"\{(\w+)\}", values)
                key = (view, text, change.revision)
                yield (key, "POST", path, json.loads(filled)) if is_read_by_post else (key, "GET", path + filled, None)


def fill(text, pattern, values):
    return re.sub(pattern, lambda found: str(values[found[1]]), re.sub(r'"(\{(revision|base)\})"', r"\1", text))


def answers(api, tag, base):
    """The responses to all requests for a tag, without ids, names of tags and lists, and times."""
    suggestions.forget()
    lists = dict(PayloadListMembership.objects.order_by("-name").values_list("name", "payload_type"))
    found = {}
    for key, method, path, body in requests_for(tag, base):
        answer = api(method, path, body)
        assert answer.status == (404 if "{tag}x" in key[1] else 200), (path, body, answer.json)
        document = answer.json
        if isinstance(document, list) and key[0] in READS_OF_ALL:
            document = [item for item in document if item[READS_OF_ALL[key[0]]] == tag]
        # In JSON the white space may differ, but not the order of members.
        text = answer.content.decode() if document is None else json.dumps(document)
        for name, kind in lists.items():
            text = re.sub(rf"\b{name}\b", f"{kind}_list", text)
        text = re.sub(r'"id": \d+', '"id": 0', text.replace(tag, "the_tag"))
        text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "time", text)
        found[key] = answer.status, {name: answer.headers.get(name) for name in HEADERS}, text
    return found


def compare(api, base, stage):
    """All responses for the clone are those for the copy. Returns those for the clone."""
    clone, copy = (answers(api, tag, base) for tag in (CLONE, COPY))
    assert clone.keys() == copy.keys()
    differing = {key: (clone[key], copy[key]) for key in clone if clone[key] != copy[key]}
    report = "\n".join(f"{key}\n  clone {one}\n  copy  {other}" for key, (one, other) in differing.items())
    assert not differing, f"{stage}: {len(differing)} of {len(clone)} differ\n{report}"
    return clone


def keep(kept, found):
    """What was answered about the past is answered again."""
    for key, answer in found.items():
        if "{revision}" in key[1] and "summary" not in key[1]:
            assert kept.setdefault(key, answer) == answer, key


def test_a_clone_answers_like_a_copy(api, settings, write_rows, scenario):
    # The mode in which ends need more care.
    settings.CDB_IOV_MODE = "discrete"
    kept = {}
    # The base as it was when it was cloned.
    base = scenario
    shared = PayloadList.objects.filter(base_list_id__isnull=False, global_tag__name=CLONE)

    def step(stage):
        keep(kept, compare(api, base, stage))

    assert shared.count() == 4 and not PayloadIOV.objects.filter(payload_list__global_tag__name=CLONE).exists()
    step("fresh")
    write_rows(
        BASE, ("Gain", "gain/later", 5, [12, 0]), ("Noise", "noise/later", 0, "open"), ("Empty", "empty/1", 1, [5, 0])
    )
    api.delete(f"deletePayloadIOV/{BASE}/Late/100/0").ok()
    new = api.post("pl", {"payload_type": "Late"}).ok()["name"]
    api.put("pl_attach", {"global_tag": BASE, "payload_list": new}).ok()
    step("after writes to the base")
    for tag in (CLONE, COPY):
        write_rows(tag, ("Gain", "gain/new", 9, [11, 0]), ("Gain", "gain/2", 12, [13, 0]))
        api.put(f"gt_change_status/{tag}/locked").ok()
        api.put(f"gt_change_status/{tag}/unlocked").ok()
    assert shared.count() == 3
    api.delete(f"deleteGlobalTag/{BASE}").ok()
    step("after the same writes to both and the deletion of the base")
    for tag in (CLONE, COPY):
        api.delete(f"deletePayloadIOV/{tag}/Noise/2/0/8/0").ok()
        api.post(f"global-tags/{tag}/revert", {"revision": 2}).ok()
    assert shared.count() == 2
    step("after a deletion and a reversion")


def test_a_reversion_leaves_detached_rows_of_the_base_alone(api, tag):
    helpers.insert(api, "second", [10, 0])
    api.post("cloneGlobalTag/tag/copy").ok()
    helpers.insert(api, "new", [10, 0])
    [detached] = api.get("piov?detached=1").ok()
    assert detached["payload_url"] == "second"
    api.delete("deletePayloadIOV/copy/Gain/10/0").ok()
    api.post("global-tags/copy/revert", {"revision": 1}).ok()
    assert api.get("payloadiovs/?gtName=copy&majorIOV=10&minorIOV=0").ok()[0][1] == "second"
    assert api.get("piov?detached=1").ok() == [detached]
