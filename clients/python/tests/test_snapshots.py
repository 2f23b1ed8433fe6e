"""Snapshots: their answers are those of the service, without network; creation, damage, and serving."""

import itertools
import json
import random
import re
import shutil
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlencode

import pytest
import requests

from cdb_client import Client, snapshot, snapshot_server
from cdb_client.config import read_config
from cdb_client.errors import DataError, InputError, NotFoundError, OutsideSnapshotError, UnavailableError
from cdb_client.moments import FIRST, LARGEST, Moment
from cdb_client.snapshot_file import SnapshotFile
from cdb_client.sources import AsOf
from cdb_client.transport import Transport
from clients.python.tests.conftest import Api
from tests.e2e.conftest import directory
from tests.e2e.service import JobClient, Service
from tests.e2e.test_clients import CppClient

PREFIX = "/api/cdb_rest/"
# Names as a database of nopayloaddb may have them.
TYPES = ["Gain", 'Gäin, "β"', "Noise,x", "Zero", "ΩPED"]
MD5 = "d41d8cd98f00b204e9800998ecf8427e"
CHECKSUMS = ["", MD5, MD5.upper(), "adler32:0a1b2c3d", "0a1b2c3d", "ß"]
URLS = ["a/b/c.root", "plain", "ü/ö 1.root", 'q"uo"te/x,y', "back\\slash/z", "http://host/a%20b?x=1", "  a/b/", "😀/é"]


@pytest.fixture(scope="session")
def service():
    """A service that accepts any names."""
    with directory() as parent, Service(parent / "data", CDB_NAME_PATTERN="[^/]+").running() as running:
        yield running


def random_rows(seed, types=TYPES[:4]):
    """Rows with gaps, some under one major number, some with an open end."""
    draw = random.Random(seed)
    for name in types:
        starts = sorted({(draw.choice([0, 3, 4, 900]), draw.randrange(60)) for _ in range(40)})
        for number, (start, following) in enumerate(zip(starts, [*starts[1:], None], strict=True)):
            end = following or draw.choice([(LARGEST, LARGEST), (start[0], start[1] + 1)])
            if draw.random() < 0.4:
                end = min(end, (start[0], start[1] + 1))
            more = {"checksum": draw.choice(CHECKSUMS), "size": draw.choice([0, 1, 2**62])}
            more |= {"revision": draw.choice(["1", "0012"])} if draw.random() < 0.5 else {}
            yield name, f"{draw.choice(URLS)}{number if number % 3 else ''}", list(start), list(end), more


@pytest.fixture
def make(server, tmp_path):
    """Creates a snapshot of tags, and returns its path."""

    def create(*tags, name="one.cdb", address=server, retry_for=60, **options):
        path = tmp_path / "snapshots" / name
        path.parent.mkdir(exist_ok=True)
        revs = dict.fromkeys(tags) | options.pop("revs", {})
        snapshot.create(Transport(read_config(address, retry_for=retry_for)), path, revs, **options)
        return path

    return create


def questions(draw, count, tags, moments=(), types=()):
    """Random targets of lookups."""
    for _ in range(count):
        major, minor = draw.choice(moments) if moments else (draw.choice([0, 3, 4, 5, 900]), draw.randrange(65))
        query = {"gtName": draw.choice(tags), "majorIOV": major, "minorIOV": minor}
        query |= draw.choice([{}, {"strict": 1}]) | draw.choice([{}, {}, {"shape": "dict"}])
        if types:
            query["payloadType"] = draw.choice(types)
        yield f"{PREFIX}payloadiovs/?{urlencode(query)}"


def answers_of(port, targets, revisions):
    """The bodies of the service for these targets, each at the revision of its tag."""
    found, session = {}, requests.Session()
    for target in targets:
        revision = revisions[re.search(r"gtName=([^&]*)", target)[1]]
        response = session.get(f"http://127.0.0.1:{port}{target}&rev={revision}", timeout=60)
        assert response.status_code == 200, response.text
        found[target] = response.content.decode()
    return found


def revisions_of(path):
    return {tag["name"]: tag["revision"] for tag in snapshot.info(path)["tags"]}


ASK_WITHOUT_NETWORK = """
import json, os, socket, sys
from concurrent.futures import ThreadPoolExecutor
from cdb_client.snapshot_server import Reads
path, answers, port = sys.argv[1:]
assert socket.socket().connect_ex(("127.0.0.1", int(port))), "there is a network"
assert not os.access(os.path.dirname(path), os.W_OK), "the file system can be written"
reads, answers = Reads(path), json.load(open(answers))
with ThreadPoolExecutor(8) as pool:
    for target, (body, _) in zip(answers, pool.map(reads.reply, answers)):
        assert body.decode() == answers[target], (target, body.decode(), answers[target])
"""


def test_2000_answers_are_those_of_the_service_without_network(service, api, make, tmp_path):
    if subprocess.run(["unshare", "-n", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine permits no namespaces")
    first = api.make_tag(list(random_rows(1)))
    second = api.make_tag(list(random_rows(2, TYPES[1:])), status="frozen")
    path = make(second, first)
    draw, tags, types = random.Random(3), [first, second], ["Gain", "Zero", "Gain,ΩPED"]
    targets = [*questions(draw, 1400, tags), *questions(draw, 600, tags, types=types)]
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps(answers_of(service.port, targets, revisions_of(path))))
    # What happens later is not in the snapshot.
    api("POST", "payload-iovs/insert", [new_row(first)])
    ask = [sys.executable, "-c", ASK_WITHOUT_NETWORK, str(path), str(answers), str(service.port)]
    read_only = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    command = ["unshare", "-n", "-m", "sh", "-c", read_only, str(path.parent), *ask]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert snapshot.verify(path)["checksum"] == snapshot.info(path)["checksum"]


def new_row(tag):
    row = {"global_tag": tag, "payload_type": "Gain", "payload_url": "later", "checksum": ""}
    return row | {"since": [0, 1], "until": [5, 0]}


@pytest.mark.parametrize("mode", ["continuous", "discrete"])
def test_a_window_and_types_have_the_answers_of_the_service_and_no_others(mode, service, fresh, make):
    service = service if mode == "continuous" else fresh(CDB_IOV_MODE=mode).start()
    address = f"http://127.0.0.1:{service.port}"
    api = Api(address)
    # At the beginning of the window, the row of Gap has ended, that of On is valid, and that of At starts.
    rows = [("Gap", "g1", [0, 0], [0, 5]), ("Gap", "g2", [0, 12], [0, 15]), ("On", "o1", [0, 3], [0, 11])]
    rows += [("At", "a1", [0, 0], [0, 2]), ("At", "a2", [0, 10], [0, 30]), ("Old", "x", [0, 0], [0, 1])]
    rows += [("Gap", "g3", [0, 20], [0, 21]), ("Later", "l", [0, 30], [0, 31])]
    tag = api.make_tag(rows)
    path = make(tag, address=address, since=Moment(0, 10), until=Moment(0, 20), name="window.cdb")
    found, last = SnapshotFile(path), 20 if mode == "discrete" else 19
    targets = list(questions(random.Random(4), 200, [tag], [(0, minor) for minor in range(10, last + 1)]))
    reads = snapshot_server.Reads(path)
    for target, body in answers_of(service.port, targets, revisions_of(path)).items():
        assert reads.reply(target)[0].decode() == body, target
    for moment in (Moment(0, 9), Moment(0, last + 1), FIRST, Moment(LARGEST, LARGEST)):
        with pytest.raises(OutsideSnapshotError, match="its window is"):
            found.find(tag, None, moment)
    parts = api("GET", "payload-iovs/range", gtName=tag, since="0,10", until="0,20")
    assert list(found.range([tag], [None], None, None, ())) == parts
    few = SnapshotFile(make(tag, address=address, types=["Gap", "On"], name="types.cdb"))
    rows = few.find(tag, None, Moment(0, 13)).rows
    assert sorted(rows) == ["Gap", "On"] and rows.get("Gap")[1] == "g2"
    with pytest.raises(OutsideSnapshotError, match="payload type 'At'"):
        rows.get("At")
    with pytest.raises(NotFoundError, match="no payload type 'Nix'"):
        make(tag, address=address, types=["Nix"], name="nix.cdb")
    assert not list(path.parent.glob("nix*"))


def test_the_client_reads_a_snapshot_as_the_service(server, api, make):
    base, patch = api.make_tag(list(random_rows(5))), api.make_tag(list(random_rows(6, TYPES[2:])))
    moments, windows = (
        [(0, 0), (3, 20), (3, 41), (4, 7), (900, 30)],
        [{}, {"since": "3,5", "until": "4,20"}, {"since": "0,30"}],
    )
    with Client(snapshot=make(base, patch)) as offline, Client(server) as online:
        assert offline.tags() == [item for item in online.tags() if item["name"] in (base, patch)]
        assert (offline.mode, offline.types()) == (online.mode, online.types())
        for names in ([base], [patch], [patch, base], [base, patch]):
            tags = offline.tag(*names), online.tag(*names)
            for moment, strict in itertools.product(moments, (False, True)):
                found, expected = (tag.resolve(moment, strict=strict) for tag in tags)
                assert (dict(found), found.revisions) == (dict(expected), expected.revisions)
            for window, types in itertools.product(windows, ([], ["Zero"])):
                assert tags[0].iovs(*types, **window) == tags[1].iovs(*types, **window)


def test_other_tags_revisions_and_times_are_outside(api, make):
    tag = api.make_tag(list(random_rows(7, ["Gain"])))
    before = api("GET", f"globalTag/{tag}", light="")
    api("POST", "payload-iovs/insert", [new_row(tag)])
    past, present = SnapshotFile(make(tag, revs={tag: before["revision"]})), SnapshotFile(make(tag, name="two.cdb"))
    assert past.state_of(tag, None) == api("GET", f"globalTag/{tag}", light="", rev=before["revision"])
    assert present.state_of(tag, None)["revision"] == before["revision"] + 1
    assert past.find(tag, AsOf("rev", str(before["revision"])), Moment(4, 0)).revision == before["revision"]
    for name, as_of in ((tag, AsOf("rev", "999")), (tag, AsOf("at", "2001-01-01")), ("other", None)):
        with pytest.raises(OutsideSnapshotError, match=str(past.path)):
            past.find(name, as_of, Moment(4, 0))


CREATE_AND_DIE = """
import os, sys
from cdb_client import config, snapshot, transport
server, path, tag = sys.argv[1:]
snapshot.create(transport.Transport(config.read_config(server)), path, {tag: None},
                progress=lambda done, total: done == 2 and os.kill(os.getpid(), 9))
"""


def test_a_killed_creation_leaves_no_file_and_is_continued(server, api, make):
    tag = api.make_tag(list(random_rows(8)))
    complete = make(tag)
    path, part = complete.with_name("killed.cdb"), complete.with_name("killed.cdb.part")
    killed = subprocess.run([sys.executable, "-c", CREATE_AND_DIE, server, path, tag], check=False)
    assert killed.returncode == -signal.SIGKILL and not path.exists() and part.exists()
    api("POST", "payload-iovs/insert", [new_row(tag)])
    with pytest.raises(DataError, match="not complete"):
        SnapshotFile(part)
    with pytest.raises(InputError, match=r"other arguments.*--restart"):
        make(tag, name="killed.cdb", types=["Gain"])
    shutil.copy(part, complete.with_name("again.cdb.part"))
    done = []
    make(tag, name="killed.cdb", progress=lambda *numbers: done.append(numbers))
    assert done == [(2, 4), (3, 4), (4, 4)]
    assert snapshot.verify(path)["checksum"] == snapshot.verify(complete)["checksum"]
    with pytest.raises(InputError, match="exists already"):
        make(tag, name="killed.cdb")
    assert revisions_of(make(tag, name="again.cdb", restart=True))[tag] == revisions_of(path)[tag] + 1
    assert sorted(one.name for one in path.parent.iterdir()) == ["again.cdb", "killed.cdb", "one.cdb"]


@contextmanager
def cutting(port, cuts):
    """A proxy that breaks the connections of the first exports after some bytes. Yields its address."""
    left = [cuts]

    class Cut(socketserver.StreamRequestHandler):
        def handle(self):
            with socket.create_connection(("127.0.0.1", port)) as upstream, upstream.makefile("rb") as received:
                head = b"".join(iter(self.rfile.readline, b"\r\n"))
                upstream.sendall(head + b"Connection: close\r\n\r\n")
                is_cut = b"/export?" in head and left[0] > 0
                left[0] -= is_cut
                self.wfile.write(received.read(1500 if is_cut else -1))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Cut) as proxy, in_thread(proxy):
        yield f"http://127.0.0.1:{proxy.server_address[1]}"


@contextmanager
def in_thread(server):
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield
    server.shutdown()
    thread.join()


def test_broken_connections_are_repeated_and_finally_reported(service, api, make):
    tag = api.make_tag(list(random_rows(9)))
    with cutting(service.port, 2) as address:
        repeated = make(tag, address=address)
    assert snapshot.verify(repeated)["checksum"] == snapshot.info(make(tag, name="two.cdb"))["checksum"]
    with cutting(service.port, 10**6) as address, pytest.raises(UnavailableError, match="Try again later"):
        make(tag, address=address, name="never.cdb", retry_for=1)
    assert [one.name for one in repeated.parent.glob("never*")] == ["never.cdb.part"]


def test_damage_and_other_versions_are_reported(api, make, tmp_path):
    path = make(api.make_tag(list(random_rows(10))))
    content = path.read_bytes()
    place = content.index("ö 1.root".encode())
    damaged = tmp_path / "damaged.cdb"
    for changed in (
        content[: place + 3] + b"9" + content[place + 4 :],
        content.replace(b'"created"', b'"creatod"'),
        content[: len(content) // 2],
        b"SQLite format 3\0" + bytes(100),
    ):
        assert changed != content
        damaged.write_bytes(changed)
        with pytest.raises(DataError, match=re.escape(str(damaged))):
            snapshot.verify(damaged)
    shutil.copy(path, damaged)
    sqlite3.connect(damaged, isolation_level=None).execute("PRAGMA user_version = 2")
    with pytest.raises(DataError, match=r"schema version 2.*another version"):
        SnapshotFile(damaged)


def test_a_served_snapshot_answers_existing_clients(service, api, make):
    tag = api.make_tag(list(random_rows(11)), status="locked")
    with snapshot_server.make_server(make(tag), 0) as server, in_thread(server):
        port, get = server.server_address[1], partial(requests.get, timeout=60)
        ours, theirs = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{service.port}"
        job, lookup = CppClient(port), f"payloadiovs/?gtName={tag}&majorIOV=3&minorIOV=20"
        assert job.payloads(tag, 3, 20) == CppClient(service.port).payloads(tag, 3, 20) != {}
        tags = JobClient(service.port).get("globalTags")
        assert job.get("globalTags") == [item for item in tags if item["name"] == tag]
        assert job.get(f"globalTag/{tag}")["status"]["name"] == "locked"
        for path in ["gtstatus", "pt", "user_settings/CDB_IOV_MODE", f"gtPayloadLists/{tag}", f"{lookup}&shape=dict"]:
            found, expected = (get(f"{address}{PREFIX}{path}") for address in (ours, theirs))
            assert found.content == expected.content
            assert found.headers.get("CDB-Revision") == expected.headers.get("CDB-Revision")


def test_a_served_snapshot_refuses_what_it_does_not_have(api, make):
    tag = api.make_tag([("Gain", "u", [1, 0], [9, 0])])
    moment = "majorIOV=3&minorIOV=0"
    with snapshot_server.make_server(make(tag, since=Moment(2, 0)), 0) as server, in_thread(server):
        job = JobClient(server.server_address[1])
        for method, path, status, code in (
            ("GET", f"payloadiovs/?gtName=nix&{moment}", 404, "outside_snapshot"),
            ("GET", f"payloadiovs/?gtName={tag}&majorIOV=1&minorIOV=9", 404, "outside_snapshot"),
            ("GET", f"payloadiovs/?gtName={tag}&{moment}&rev=99", 404, "outside_snapshot"),
            ("GET", f"payloadiovs/?gtName={tag}&{moment}&payloadType=Nix", 404, "not_found"),
            ("GET", f"payloadiovs/?gtName={tag}&gtName={tag}&{moment}", 400, "invalid_input"),
            ("GET", f"payloadiovs/?gtName={tag}&majorIOV=-1&minorIOV=0", 400, "invalid_input"),
            ("GET", f"payloadiovs/?gtName={tag}&{moment}&at=yesterday", 400, "invalid_input"),
            ("GET", f"payloadiovs/?gtName={tag}&majorIOV=5", 400, "invalid_input"),
            ("GET", f"payloadiovs/?gtName={tag}&{moment}&strict=maybe", 400, "invalid_input"),
            ("GET", "globalTags?strict=1", 400, "invalid_input"),
            ("GET", "user_settings/CDB_SECRET_KEY", 404, "not_found"),
            ("GET", "piov", 404, "not_found"),
            ("POST", "gt", 405, "method_not_allowed"),
            ("DELETE", f"deleteGlobalTag/{tag}", 405, "method_not_allowed"),
        ):
            found, error = job.call(method, path, {} if method == "POST" else ...)
            assert (found, error["code"]) == (status, code), path
        with socket.create_connection(server.server_address) as raw, raw.makefile() as received:
            raw.sendall(f"GET {PREFIX}globalTag/ä HTTP/1.1\r\n\r\nnonsense\r\n\r\n".encode())
            response = received.read()
        assert "'ä'" in response and "bad_request" in response and "<" not in response
