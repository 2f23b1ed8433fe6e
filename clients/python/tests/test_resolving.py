"""Reads of tags: every answer is that of the service, and each stretch of moments is asked for once."""

import random
import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_client import Client, InputError, Moment, NotFoundError, UnavailableError
from clients.python.tests.conftest import Api, new_name
from tests.profiles import examples

TYPES = ("Gain", "Noise", "Pedestal")
LARGEST = 2**63 - 1
starts = st.tuples(st.integers(0, 7), st.sampled_from([0, 1, 2, 50, LARGEST]))
moments = starts | st.just((LARGEST, LARGEST))


@st.composite
def rows(draw):
    """Rows of a tag: for each payload type with gaps, rows up to the next one, and open ends."""
    found = []
    for payload_type in draw(st.lists(st.sampled_from(TYPES), unique=True, min_size=1)):
        places = sorted(draw(st.sets(starts, min_size=1, max_size=6)))
        for number, since in enumerate(places):
            later = places[number + 1 :]
            until = (
                draw(st.sampled_from([*map(list, later), "next"])) if later else draw(st.sampled_from(["open", [9, 1]]))
            )
            found.append((payload_type, f"{payload_type}/{number}", since, until))
    return found


def lookup(api, names, moment, **query):
    """The service's own rows."""
    return api("GET", "payloadiovs/", gtName=list(names), majorIOV=moment[0], minorIOV=moment[1], **query)


def resolved(tag, moment, **options):
    """The client's rows."""
    return [iov.row for iov in tag.resolve(moment, **options).values()]


def check(api, tag, asked, **past):
    """The client's rows at these moments are those of the service, for all kinds of lookups."""
    for moment in asked:
        assert resolved(tag, moment) == lookup(api, tag.names, moment, **past)
        assert resolved(tag, moment, strict=True) == lookup(api, tag.names, moment, strict=1, **past)
        assert resolved(tag, moment, types=["Noise"]) == lookup(api, tag.names, moment, payloadType="Noise", **past)


def insert(api, name, payload_type, since, until="open"):
    row = {"global_tag": name, "payload_type": payload_type, "payload_url": new_name("url"), "checksum": ""}
    api("POST", "payload-iovs/insert", row | {"since": since, "until": until})


@pytest.fixture(scope="module")
def types(service):
    api = Api(f"http://127.0.0.1:{service.port}")
    for name in TYPES:
        api("POST", "pt", {"name": name})


@pytest.fixture
def client(server):
    with Client(server) as made:
        yield made


def play(api, server, first, second, asked, changed):
    names = api.make_tag(first), api.make_tag(second)
    with tempfile.TemporaryDirectory() as cache:
        # Asked for one by one, from the cache on disk, and in one go; each tag alone, and both as one.
        clients = [Client(server, cache=directory) for directory in (cache, cache, False)]
        fresh = Client(server, cache=cache, fresh=True)
        for client in clients:
            for tag in (client.tag(names[0]), client.tag(*names)):
                if client is clients[2]:
                    tag.prefetch()
                    sent = client.transport.requests
                check(api, tag, asked)
        # Only the payload types were asked for, because the tag may have none of those that are wanted.
        assert clients[2].transport.requests <= sent + 1
        check(api, fresh.tag(*names), asked)
        before = fresh.tag(*names).resolve(asked[0]).revisions
        insert(api, names[0], "Noise", changed)
        for client in (fresh, Client(server, cache=cache)):
            check(api, client.tag(names[0]), asked)
            check(api, client.tag(*names), asked)
        check(api, clients[1].tag(*names).rev(*before), asked, rev=before)


@settings(max_examples=examples(40))
@given(first=rows(), second=rows(), asked=st.lists(moments, min_size=1, max_size=6), changed=starts)
def test_the_client_answers_as_the_service(service, types, first, second, asked, changed):
    server = f"http://127.0.0.1:{service.port}"
    play(Api(server), server, first, second, asked, list(changed))


def test_the_mode_discrete(fresh):
    service = fresh(CDB_IOV_MODE="discrete")
    with service.running():
        server = f"http://127.0.0.1:{service.port}"
        api = Api(server)
        first = [("Noise", "a", [1, 0], [1, 5]), ("Noise", "b", [1, 6], [2, LARGEST]), ("Gain", "c", [2, 0], "open")]
        second = [("Noise", "d", [0, 7], [4, 0]), ("Pedestal", "e", [1, 5], [1, 5]), ("Gain", "f", [0, 0], [1, 9])]
        for name in TYPES:
            api("POST", "pt", {"name": name})
        asked = [(1, 6), (3, 0), (1, 5), (0, 0), (2, LARGEST), (1, 7), (4, 0), (4, 1), (LARGEST, LARGEST), (2, 0)]
        play(api, server, first, second, asked, [1, 5])
        assert Client(server).mode == "discrete"


@pytest.mark.parametrize("order", ["random", "descending"])
@pytest.mark.parametrize("tag", ["runs", "times"])
def test_thousands_of_moments_take_few_requests(service, server, client, api, tag, order):
    name = f"{tag}-{order}"
    if tag == "runs":
        done = service.manage("seed_scenario", "moderate", "--global-tag", name)
        assert done.returncode == 0, done.stderr
        chosen = [(run, second) for run in (*range(2000, 3000), *range(8000, 9000)) for second in (17, 4000)]
    else:
        # All under major number 0.
        starts = [
            (f"Type{number % 20}", f"{number}", [0, 1_700_000_000 + 977 * number], "next") for number in range(4000)
        ]
        name = api.make_tag(starts)
        chosen = [(0, 1_700_000_000 + 400 * number) for number in (*range(2000), *range(7000, 9000))]
    random.Random(1).shuffle(chosen)
    if order == "descending":
        chosen.sort(reverse=True)
    found = [(moment, client.tag(name).resolve(moment)) for moment in chosen]
    assert client.transport.requests <= 30
    for moment, one in random.Random(2).sample(found, 20):
        assert [iov.row for iov in one.values()] == lookup(api, [name], moment)


def test_a_stretch_is_of_one_revision(api, server):
    name = api.make_tag([("Gain", str(run), [run, 0], "next") for run in range(100)] + [("Noise", "n", [0, 0], "open")])
    client = Client(server, cache=False)
    tag = client.tag(name)
    first = tag.resolve(50)
    # A write after each request to the service, also between those that read one stretch.
    number, get = iter(range(200, 300)), client.transport.get

    def change(*arguments, **options):
        insert(api, name, "Noise", [next(number), 0], "next")
        return get(*arguments, **options)

    client.transport.get = change
    for run in (90, 10, 30, 250, 70, 260, 5, 220, 255):
        found = tag.resolve(run)
        assert found.revisions[0] >= first.revisions[0]
        rows = [iov.row for iov in found.values()]
        assert rows == lookup(api, [name], (run, 0), rev=found.revisions[0])
    with pytest.raises(UnavailableError, match="changes while"):
        tag.prefetch(0, 90)


def test_what_a_caller_may_give(api, client):
    name = api.make_tag([("Gain", "a", [1, 0], [5, 0]), ("Noise", "b", [1, 0], "open")])
    tag = client.tag(name)
    for found in (tag.resolve("6,7"), tag.resolve(6, 7), tag.resolve(run=6, lumi=7), tag.resolve(Moment(6, 7))):
        assert found.moment == (6, 7) and found["Gain"].url == "a" and found.tags == (name,)
    assert tag.resolve("open")["Noise"].until == tag.resolve("open").moment
    assert list(tag.resolve(6, strict=True)) == ["Noise"] and "Gain" not in tag.resolve(6, types="Noise")
    assert tag.resolve(6).get("Pedestal") is None
    with pytest.raises(NotFoundError, match=f"Pedestal.*{name}.*6,0"):
        tag.resolve(6)["Pedestal"]
    assert len(tag.resolve(0)) == 0
    for wrong in ((), (-1,), ("x",), (1.5,), (2**63,)):
        with pytest.raises(InputError):
            tag.resolve(*wrong)
    with pytest.raises(NotFoundError, match="Pedestall"):
        tag.resolve(6, types=["Pedestall"])
    for missing in (client.tag("nowhere"), tag.rev(1000), tag.at("2001-01-01")):
        with pytest.raises(NotFoundError):
            missing.resolve(1)


def test_the_past(api, client):
    name = api.make_tag([("Gain", "a", [1, 0], [5, 0])])
    tag = client.tag(name)
    revision = tag.revision
    then = api("GET", f"global-tags/{name}/changes")["results"][0]["time"]
    insert(api, name, "Gain", [5, 0])
    assert len(tag.rev(revision).resolve(6, strict=True)) == 0 and len(tag.resolve(6, strict=True)) == 1
    assert tag.at(then).resolve(1).revisions == (revision,)
    later = datetime.fromisoformat(then) - timedelta(microseconds=1)
    assert tag.at(later.astimezone(UTC)).resolve(1).revisions[0] <= revision
    assert len(tag.rev(revision).iovs()) == 1 and tag.rev(revision).info()["revision"] == revision


def test_many_moments(api, client):
    names = [api.make_tag([("Gain", f"{n}{run}", [run, 0], [run + 1, 0]) for run in range(n, 9, 2)]) for n in (0, 1)]
    tag = client.tag(*names)
    asked = [Moment(run % 12, 0) for run in range(6000)]
    many = tag.resolve_many(asked, strict=True)
    assert client.transport.requests == 2
    assert [one.moment for one in many] == asked and len(many[0].revisions) == 2
    assert [dict(one) for one in many[:12]] == [dict(tag.resolve(moment, strict=True)) for moment in asked[:12]]
    past = tag.rev(*many[0].revisions).resolve_many(["3"], types=["Gain"])
    assert [iov.row for iov in past[0].values()] == lookup(api, names, (3, 0))
    mixed = tag.rev(1, None)
    assert resolved(mixed, "3") == [iov.row for iov in mixed.resolve_many(["3"])[0].values()]
    assert resolved(mixed, (3, 0)) == lookup(api, names, (3, 0), rev=["1", ""])


def test_tables_and_analysis(api, client, tmp_path):
    base = api.make_tag([("Gain", "a", [1, 0], [5, 0]), ("Gain", "b", [7, 0], "open"), ("Noise", "n", [0, 0], "open")])
    patch = api.make_tag([("Gain", "c", [2, 0], [3, 0])])
    tag, both = client.tag(base), client.tag(patch, base)
    assert [(iov.url, iov.since, str(iov.until)) for iov in tag.iovs("Gain")] == [
        ("a", (1, 0), "5,0"),
        ("b", (7, 0), "open"),
    ]
    assert [iov.url for iov in both.iovs("Gain", since=1, until=4)] == ["a", "c", "a"]
    assert tag.iovs("Gain").to_pandas().url.tolist() == ["a", "b"]
    gaps = {one["payload_type"]: one["gaps"] for one in tag.coverage(since=1)["payload_types"]}
    assert gaps == {"Gain": [{"since": [5, 0], "until": [7, 0]}], "Noise": []}
    different = both.diff(base)
    assert [(one["payload_type"], one["since"], one["until"]) for one in different] == [("Gain", [2, 0], [3, 0])]
    assert tag.diff(tag.rev(tag.revision), summary=True)["differences"] == 0
    assert [change["action"] for change in tag.changes()][-1] == "create"
    assert {row["payload_url"] for row in tag.change(tag.revision)["after"]["payload_iovs"]} >= {"a", "b"}
    reasons = {one["payload_type"]: one["reason"] for one in tag.explain(5) if one["global_tag"] == base}
    assert reasons == {"Gain": "ended", "Noise": "valid"}
    assert {use["global_tag"] for use in client.uses(url="c")} == {patch}
    cursor = client.changes("now")["cursor"]
    added = api.make_tag([])
    page = client.changes(cursor)
    assert page["changes"][0]["global_tag"] == added and client.changes(page["cursor"])["changes"] == []
    with pytest.raises(InputError):
        client.uses()
    file = tmp_path / "export.csv"
    assert tag.export(file, types=["Gain"]) == 2 and file.read_text().count("\n") == 3
    assert tag.export(file, "jsonl", since=1, until=2) == 2
    with pytest.raises(NotFoundError):
        client.tag("nowhere").export(tmp_path / "none.csv")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["export.csv"]
    assert base in [item["name"] for item in client.tags()] and "Gain" in [item["name"] for item in client.types()]
    assert {"frozen", "locked"} <= {item["name"] for item in client.statuses()}
    assert "role" in str(client.whoami())


def test_a_client_sees_its_own_writes(server, api):
    client = Client(server)
    tag = client.tag(api.make_tag([("Own", "first.root", [1, 0], "open")]))
    assert tag.resolve(5)["Own"].url == "first.root"
    client.writes.insert(tag.names[0], "Own", "second.root", "2", "open")
    assert tag.resolve(5)["Own"].url == "second.root"
