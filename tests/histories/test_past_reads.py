"""Random histories of requests: each response of the past is that of then, by revision and by time."""

from contextlib import suppress

import pytest
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from cdb_rest.maintenance.pruning import Limit, prune_history
from cdb_rest.models import GlobalTagChange, PayloadIOV, PayloadList
from cdb_rest.rules.errors import CdbError
from cdb_rest.writes.global_tags import delete_global_tag
from tests.histories.steps import NUMBERS, TYPES, clear, play
from tests.profiles import examples, of_soak

TAGS = ("a", "b", "c")
TAG, KIND = st.sampled_from(TAGS), st.sampled_from(TYPES)
INSERT = st.tuples(st.just("insert"), TAG, KIND, NUMBERS, NUMBERS, st.integers(0, 2))
MOVE = st.tuples(st.just("move"), TAG, NUMBERS)
STEPS = st.one_of(
    INSERT,
    INSERT,
    INSERT,
    MOVE,
    MOVE,
    st.tuples(st.just("list"), TAG, KIND),
    st.tuples(st.just("attach iov"), NUMBERS, NUMBERS, NUMBERS),
    st.tuples(st.just("bulk"), NUMBERS, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=3)),
    st.tuples(st.just("delete some iov"), NUMBERS),
    st.tuples(st.just("delete list"), NUMBERS),
    st.tuples(st.just("status"), TAG, st.sampled_from(["locked", "unlocked", "unlocked"])),
    st.tuples(st.just("delete"), TAG),
    st.tuples(st.just("create"), TAG),
    st.tuples(st.just("clone"), TAG, TAG),
    st.tuples(st.just("clone past"), TAG, TAG, NUMBERS),
    st.tuples(st.just("clone past"), TAG, TAG, NUMBERS),
    st.tuples(st.just("revert"), TAG, NUMBERS),
    st.tuples(st.just("prune"), st.integers(1, 6)),
    st.tuples(st.just("delete without history"), TAG),
)
LOOKUPS = [
    f"payloadiovs/?gtName={{}}&majorIOV={major}&minorIOV=0&strict={strict}&{form}"
    for major in (1, 3)
    for strict, form in ((0, "window=1"), (1, "shape=dict&snap=1"))
]
PATHS = [
    *LOOKUPS,
    "gtPayloadLists/{}",
    "globalTag/{}?light",
    "globalTag/{}",
    "global-tags/{}/export",
    "global-tags/{}/export?format=jsonl&since=1,0&until=3,0",
    "global-tags/{}/export?payload_type=Gain&since=2,5",
    "global-tags/{}/coverage",
    "payloadiovsrange/?gtName={}&startMajorIOV=0&startMinorIOV=0&endMajorIOV=3&endMinorIOV=-1",
    "payload-iovs/range?gtName={}&since=1,0&until=4,0",
]


def play_more(api, step):
    """Send the step's request; it may well be refused."""
    match step:
        case "move", tag, number:
            if name := some_list(number):
                api.put("pl_attach", {"global_tag": tag, "payload_list": name})
        case "attach iov", number, start, length:
            if name := some_list(number):
                row = {"payload_url": f"attached{start}{length}", "checksum": "", "major_iov": start, "minor_iov": 0}
                end = {"major_iov_end": start + length, "minor_iov_end": 0} if length else {}
                made = api.post("piov", row | end)
                if made.status == 200:
                    api.put("piov_attach", {"payload_list": name, "piov_id": made.json["id"]})
        case "bulk", number, starts:
            if name := some_list(number):
                rows = [
                    {
                        "payload_url": f"bulk{url}",
                        "payload_list": name,
                        "major_iov": start,
                        "minor_iov": 0,
                        "revision": url,
                    }
                    for start, url in starts
                ]
                api.post("bulk_piov", rows)
        case "delete some iov", number:
            attached = PayloadIOV.objects.filter(payload_list__global_tag__isnull=False).order_by("id")
            for iov in attached.select_related("payload_list__global_tag", "payload_list__payload_type")[
                number : number + 1
            ]:
                of = f"{iov.payload_list.global_tag.name}/{iov.payload_list.payload_type.name}"
                ends = f"{iov.major_iov}/{iov.minor_iov}/{iov.major_iov_end}/{iov.minor_iov_end}"
                api.delete(f"deletePayloadIOV/{of}/{ends}")
        case "delete list", number:
            if name := some_list(number):
                api.delete(f"deletePayloadList/{name}")
        case "clone past", source, target, number:
            changes = GlobalTagChange.objects.filter(global_tag=source).order_by("-revision")[number : number + 1]
            for change in changes:
                # If it is the source, it is restored.
                api.delete(f"deleteGlobalTag/{target}")
                api.post(f"cloneGlobalTag/{source}/{target}?rev={change.revision}")
        case "revert", tag, back:
            changes = GlobalTagChange.objects.filter(global_tag=tag).order_by("-revision")[back : back + 1]
            for change in changes:
                api.post(f"global-tags/{tag}/revert", {"revision": change.revision})
        case "prune", keep:
            prune_history(limit=Limit(keep=keep))
        case "delete without history", tag:
            with suppress(CdbError):
                delete_global_tag(name=tag, keep_history=False)
        case _:
            play(api, step)


def some_list(number):
    """The name of a list, attached or not, or None if there are no lists."""
    names = list(PayloadList.objects.order_by("id").values_list("name", flat=True))
    return names[number % len(names)] if names else None


def fetch(path):
    """Status, headers that are about the response, and body."""
    response = Client(raise_request_exception=False).get(f"/api/cdb_rest/{path}")
    body = b"".join(response) if response.streaming else response.content
    names = ("CDB-Revision", "CDB-Valid-Since", "CDB-Valid-Until", "CDB-Canonical-Moment", "Content-Disposition")
    return response.status_code, {name: response.get(name) for name in names}, body


@pytest.mark.parametrize("mode", ["discrete", *of_soak("continuous")])
@pytest.mark.django_db(transaction=True)
@profile(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=8, max_size=16))
def test_the_past_stays_as_it_was(api, settings, mode, steps):
    settings.CDB_IOV_MODE = mode
    clear()
    for kind in TYPES:
        api.post("pt", {"name": kind})
    for number, tag in enumerate(TAGS[:2]):
        api.post("gt", {"name": tag, "status": "unlocked"}).ok()
        for kind in TYPES:
            play(api, ("insert", tag, kind, number, 3, 0))
    kept = {}
    for step in steps:
        play_more(api, step)
        for tag in TAGS:
            keep(kept, tag)
    for (path, tag, revision), (status, headers, body) in kept.items():
        change = GlobalTagChange.objects.get(global_tag=tag, revision=revision)
        time = change.created.isoformat()
        for query in (f"rev={revision}", f"at={time}"):
            again = fetch(f"{path.format(tag)}{'&' if '?' in path else '?'}{query}")
            # A payload type that the tag did not have.
            assert again[0] == (status if change.has_history else 410), (path, query, steps)
            assert again[0] in (404, 410) or again == (status, headers, body), (path, query, steps)


def keep(kept, tag):
    """Keep the responses for the present state of the tag, unless they are there already."""
    status, headers, _ = fetch(f"globalTag/{tag}?light")
    revision = status == 200 and int(headers["CDB-Revision"])
    for path in PATHS:
        if status != 200 or (path, tag, revision) in kept:
            return
        kept[path, tag, revision] = fetch(path.format(tag))
