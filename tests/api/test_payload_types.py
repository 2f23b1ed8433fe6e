"""The parameter payloadType: every lookup and analysis of some payload types has their rows of the whole response."""

import json

import pytest

from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.registry import registry
from cdb_rest.models import GlobalTag, PayloadType
from tests.api.helpers import LOOKUP, MOMENT_OF_LOOKUP, insert

pytestmark = pytest.mark.django_db(transaction=True)
RANGE = "payloadiovsrange/?gtName=tag&startMajorIOV=0&startMinorIOV=0&endMajorIOV=-1&endMinorIOV=-1"


def first_of_rows(answer):
    return {row[0]: row for row in answer.ok()}


def by_member(answer):
    return {row.get("payload_type") or row["payload_type_name"]: row for row in answer.ok()}


def of_coverage(answer):
    return {row["payload_type"]: row for row in answer.ok()["payload_types"]}


def lines(answer):
    assert answer.status == 200, answer.json
    return {json.loads(line)["payload_type"]: line for line in answer.content.splitlines()}


# Each route, with a function that reads the rows of a response by payload type.
READS = [
    (LOOKUP, first_of_rows),
    (f"{LOOKUP}&shape=dict", by_member),
    (f"{LOOKUP}&strict=1&snap=1", first_of_rows),
    (f"{LOOKUP}&rev=4", first_of_rows),
    (f"{LOOKUP}&gtName=patch", first_of_rows),
    (f"{LOOKUP}&gtName=patch&rev=4&rev=", first_of_rows),
    (RANGE, by_member),
    (f"{RANGE}&rev=4", by_member),
    ("payload-iovs/range?gtName=tag", by_member),
    ("payload-iovs/range?gtName=tag&rev=4", by_member),
    ("payload-iovs/range?gtName=tag&gtName=patch", by_member),
    ("global-tags/tag/coverage?since=1,0", of_coverage),
    ("global-tags/tag/coverage?base=patch", of_coverage),
    (f"payload-iovs/explain?{MOMENT_OF_LOOKUP}", by_member),
    ("global-tags/tag/diff/patch?", by_member),
    ("global-tags/tag/diff/tag?rev_a=1&summary=1", of_coverage),
    ("global-tags/tag/export?format=jsonl", lines),
    ("global-tags/tag/export?format=jsonl&rev=4", lines),
]
each_read = pytest.mark.parametrize(("path", "read"), READS, ids=[path for path, _ in READS])


@pytest.fixture
def tags(api, build):
    """The tag `tag` has Gain, Noise and Pedestal, the tag `patch` another Gain, and no tag has Unused."""
    for name in ("tag", "patch"):
        api.post("gt", {"name": name, "status": "unlocked"}).ok()
    for name in ("Gain", "Noise", "Pedestal", "Unused"):
        api.post("pt", {"name": name}).ok()
    for payload_type, since in (("Gain", 1), ("Noise", 2), ("Pedestal", 3)):
        insert(api, payload_type.lower(), [since, 0], payload_type=payload_type)
    build.iov(build.list(GlobalTag.objects.get(name="patch"), "Gain"), (5, 0), url="patch")


SELECTIONS = {
    "payloadType=Gain": {"Gain"},
    "payload_type=Noise": {"Noise"},
    "payloadType=Noise,Gain": {"Gain", "Noise"},
    "payloadType=Noise&payloadType=Gain": {"Gain", "Noise"},
    "payloadType=Noise&payload_type=Gain,Pedestal": {"Gain", "Noise", "Pedestal"},
    "payloadType=Gain,Unused": {"Gain"},
    "payloadType=Unused": set(),
}


@each_read
def test_the_rows_are_those_of_the_selected_types(api, tags, path, read):
    whole = read(api.get(path))
    for selection, names in SELECTIONS.items():
        found = read(api.get(f"{path}&{selection}"))
        if "explain" in path:
            # It has the reason for the lack of a payload list.
            assert found.pop("Unused", {"reason": "no_payload_list"})["reason"] == "no_payload_list"
        assert found == {name: row for name, row in whole.items() if name in names}, selection


@each_read
def test_unknown_types_and_empty_names_are_errors(api, tags, path, read):
    for wrong in ("payloadType=Nois", "payload_type=Gain,Nois", "payloadType=Gain&payloadType=Nois"):
        assert "Nois" in api.get(f"{path}&{wrong}").error(404, "payload_type_not_found")["detail"]
    for wrong in ("payloadType=", "payload_type=Gain,", "payloadType=Gain&payloadType="):
        api.get(f"{path}&{wrong}").error(400, "invalid_input")
    api.get(f"{path}&payloadtype=Gain").error(400, "unknown_parameter")


@each_read
def test_each_selection_has_its_own_validators(api, tags, path, read):
    answers = [api.get(f"{path}{more}") for more in ("", "&payloadType=Gain", "&payloadType=Gain,Noise")]
    tags_of_answers = [answer.headers.get("ETag") for answer in answers]
    if "export" in path and "rev" not in path:
        assert tags_of_answers == [None] * 3
        return
    assert len(set(tags_of_answers)) == 3
    same = api.get(f"{path}&payload_type=Noise&payloadType=Gain,Noise")
    assert same.headers["ETag"] == tags_of_answers[2] and same.content == answers[2].content
    for number, more in enumerate(("", "&payloadType=Gain")):
        assert api.get(f"{path}{more}", **{"If-None-Match": tags_of_answers[number]}).status == 304
        assert api.get(f"{path}{more}", **{"If-None-Match": tags_of_answers[2]}).status == 200


@pytest.mark.parametrize("stack", ["", "&gtName=patch"])
def test_a_window_of_some_types_holds(api, tags, stack):
    def look_up(at):
        path = f"payloadiovs/?gtName=tag{stack}&majorIOV={at[0]}&minorIOV={at[1]}&payloadType=Gain,Pedestal&window=1"
        return api.get(path)

    for major in range(8):
        answer = look_up((major, 0))
        since, until = (tuple(map(int, answer.headers[f"CDB-Valid-{end}"].split(","))) for end in ("Since", "Until"))
        assert since <= (major, 0) < until
        last = (until[0] - 1, 2**63 - 1) if until[1] == 0 else (until[0], until[1] - 1)
        assert look_up(since).content == look_up(last).content == answer.content


@pytest.mark.parametrize("selected", ["payloadType", "payload_type"])
@pytest.mark.parametrize("tag", ["tag", ["tag", "patch"]])
def test_many_moments_have_the_rows_of_single_lookups(api, tags, tag, selected):
    moments = [[major, 0] for major in range(8)]
    for types in ("Gain", ["Gain"], ["Noise", "Gain"], ["Unused"]):
        found = api.post("payload-iovs/query", {"gtName": tag, "moments": moments, selected: types}).ok()
        rows = [one["rows"] if "rows" in one else found[one["same_as"]]["rows"] for one in found]
        by_moment = {tuple(moment): row for one, row in zip(found, rows, strict=True) for moment in one["moments"]}
        names = ",".join([types] if isinstance(types, str) else types)
        query = "&".join(f"gtName={name}" for name in ([tag] if isinstance(tag, str) else tag))
        for moment in moments:
            path = f"payloadiovs/?{query}&majorIOV={moment[0]}&minorIOV=0&payloadType={names}"
            assert by_moment[tuple(moment)] == api.get(path).ok()
    # Moments that differ only in other payload types have the same result.
    assert len(api.post("payload-iovs/query", {"gtName": "tag", "moments": moments, selected: ["Gain"]}).ok()) <= 5
    body = {"gtName": tag, "moments": moments}
    api.post("payload-iovs/query", body | {selected: ["Nois"]}).error(404, "payload_type_not_found")
    api.post("payload-iovs/query", body | {selected: ""}).error(400, "invalid_input")
    api.post("payloadiovs/", body | {"payloadtype": "Gain"}).error(400, "invalid_input")


def test_affected_moments_are_those_of_the_selected_types(api, tags):
    path, body = "global-tags/tag/affected", {"from_rev": 1, "moments": [[major, 0] for major in range(5)]}
    for more, expected in (
        ({"payload_type": "Noise"}, [["Noise"]]),
        ({"payloadType": ["Gain", "Noise"]}, [["Gain"], ["Gain", "Noise"]]),
        ({"payloadType": ["Unused"]}, []),
    ):
        found = api.post(path, body | more).ok()
        assert [group["payload_types"] for group in found["groups"]] == expected
    api.post(path, body | {"payloadType": "Nois"}).error(404, "payload_type_not_found")


def test_a_deleted_type_is_found_in_the_past(api, tags):
    api.delete("deleteGlobalTag/tag").ok()
    PayloadType.objects.get(name="Noise").delete()
    for path in (f"{LOOKUP}&rev=4", f"{LOOKUP}&gtName=patch&rev=4&rev=", f"{RANGE}&rev=4"):
        assert len(api.get(f"{path}&payloadType=Noise").ok()) == 1
    body = {"gtName": "tag", "rev": 4, "moments": [[5, 0]], "payloadType": "Noise"}
    assert len(api.post("payload-iovs/query", body).ok()[0]["rows"]) == 1
    api.get(f"{LOOKUP}&gtName=patch&gtName=patch&payloadType=Noise".replace("gtName=tag", "gtName=patch")).error(404)


@pytest.mark.parametrize("more", ["", "&gtName=patch", "&rev=4"])
def test_compiled_lists_answer_with_the_same_bytes(api, tags, compiled_tags, more):
    paths = [f"{LOOKUP}{more}&payloadType={names}&window=1" for names in ("Gain", "Gain,Noise", "Unused")]
    before = [api.get(path) for path in paths]
    compile_tag("tag")
    registry.refresh()
    for path, answer in zip(paths, before, strict=True):
        again = api.get(path)
        assert (again.content, again.headers["ETag"]) == (answer.content, answer.headers["ETag"])
    insert(api, "newest", [4, 0], payload_type="Noise")
    changed = api.get(paths[1]).ok()
    assert [row[1] for row in changed if row[0] == "Noise"] == (["noise"] if "rev" in more else ["newest"])
