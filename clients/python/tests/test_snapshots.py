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
from urllib.parse import urlencode

import pytest
import requests

from cdb_client import Client, snapshot, snapshot_server
from cdb_client.config import read_config
from cdb_client.errors import DataError, InputError, NotFoundError, OutsideSnapshotError, UnavailableError
from cdb_client.moments import FIRST, LARGEST, OPEN, Moment
from cdb_client.snapshot_file import SnapshotFile
from cdb_client.transport import Transport
from clients.python.tests.conftest import Api
from tests.e2e.conftest import directory
from tests.e2e.service import JobClient, Service
from tests.e2e.test_clients import CppClient

PREFIX = "/api/cdb_rest/"
# Names as a database of nopayloaddb may have them.
TYPES = ["Gain", 'Gäin, "β"', "Noise,x", "Zero", "ΩPED"]
CHECKSUMS = ["", "d41d8cd98f00b204e9800998ecf8427e", "adler32:0a1b2c3d", "ß"]
URLS = ["a/b/c.root", "plain", "ü/ö 1.root", 'q"uo"te/x,y', "back\\slash/z", "http://host/a%20b?x=1", "  a/b/", "😀/é"]


@pytest.fixture(scope="session")
def service():
    """A service that accepts any names."""
    with directory() as parent, Service(parent / "data", CDB_NAME_PATTERN="[^/]+").running() as running:
        yield running


def random_rows(seed, types=TYPES[:4]):
    """Rows with gaps, and some with an open end."""
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

    def create(*tags, name="one.cdb", address=server, retry_for=60, revs=None, **options):
        path = tmp_path / name
        transport = Transport(read_config(address, retry_for=retry_for))
        snapshot.create(transport, path, revs or dict.fromkeys(tags), **options)
        return path

    return create


def answers_of(port, path, count, majors=(0, 3, 4, 5, 900), minors=range(65), types=None):
    """The bodies of the service for random lookups at the revisions of a snapshot, by target."""
    draw, session, found = random.Random(3), requests.Session(), {}
    tags = snapshot.info(path)["tags"]
    for _ in range(count):
        tag = draw.choice(tags)
        query = {"gtName": tag["name"], "rev": tag["revision"]}
        query |= {"majorIOV": draw.choice(majors), "minorIOV": draw.choice(minors)}
        query |= draw.choice([{}, {"strict": 1}]) | draw.choice([{}, {}, {"shape": "dict"}])
        query |= draw.choice([{}, {}, {"payloadType": types}]) if types else {}
        target = f"{PREFIX}payloadiovs/?{urlencode(query)}"
        response = session.get(f"http://127.0.0.1:{port}{target}", timeout=60)
        assert response.status_code == 200, response.text
        found[target] = response.content.decode()
    return found


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


def test_answers_are_those_of_the_service_without_network(service, api, make, tmp_path):
    if subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True).returncode:
        pytest.skip("this machine permits no namespaces")
    path = make(api.make_tag(list(random_rows(1))), api.make_tag(list(random_rows(2, TYPES[1:])), status="frozen"))
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps(answers_of(service.port, path, 1000, types="ΩPED,Gain")))
    ask = [sys.executable, "-c", ASK_WITHOUT_NETWORK, str(path), str(answers), str(service.port)]
    read_only = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    command = ["unshare", "-n", "-m", "sh", "-c", read_only, str(path.parent), *ask]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mode", ["continuous", "discrete"])
def test_a_window_and_types_have_the_answers_of_the_service_and_no_others(mode, service, fresh, make):
    service = service if mode == "continuous" else fresh(CDB_IOV_MODE=mode).start()
    api = Api(address := f"http://127.0.0.1:{service.port}")
    # At the beginning of the window, the row of Gap has ended, that of On is valid, and that of At starts.
    rows = [("Gap", "g1", [0, 0], [0, 5]), ("Gap", "g2", [0, 12], [0, 15]), ("On", "o1", [0, 3], [0, 11])]
    rows += [("At", "a1", [0, 0], [0, 2]), ("At", "a2", [0, 10], [0, 30]), ("Old", "x", [0, 0], [0, 1])]
    rows += [("Gap", "g3", [0, 20], [0, 21]), ("Later", "l", [0, 30], [0, 31])]
    name = api.make_tag(rows)
    path = make(name, address=address, since=Moment(0, 10), until=Moment(0, 20), name="window.cdb")
    reads, last = snapshot_server.Reads(path), 20 if mode == "discrete" else 19
    for target, body in answers_of(service.port, path, 200, [0], range(10, last + 1)).items():
        assert reads.reply(target)[0].decode() == body, target
    with Client(snapshot=path) as client:
        tag = client.tag(name)
        assert tag.iovs() == Client(address).tag(name).iovs(since="0,10", until="0,20")
        for moment in (Moment(0, 9), Moment(0, last + 1), FIRST, OPEN):
            with pytest.raises(OutsideSnapshotError, match="its window is"):
                tag.resolve(moment)
        for other in (tag.rev(999), tag.at("2001-01-01"), client.tag("other")):
            with pytest.raises(OutsideSnapshotError, match=str(path)):
                other.resolve(0, 13)
    with Client(snapshot=make(name, address=address, types=["Gap", "On"], name="types.cdb")) as client:
        found = client.tag(name).resolve(0, 13)
        assert list(found) == ["Gap", "On"] and found["Gap"].url == "g2"
        with pytest.raises(OutsideSnapshotError, match="payload type 'At'"):
            found["At"]
    with pytest.raises(NotFoundError, match="no payload type 'Nix'"):
        make(name, address=address, types=["Nix"], name="nix.cdb")
    assert not list(path.parent.glob("nix*"))


def test_the_client_reads_a_snapshot_as_the_service(server, api, make):
    base, patch = api.make_tag(list(random_rows(5))), api.make_tag(list(random_rows(6, TYPES[2:])))
    moments = [(0, 0), (3, 20), (3, 41), (4, 7), (900, 30)]
    windows = [{}, {"since": "3,5", "until": "4,20"}, {"since": "0,30"}]
    with Client(snapshot=make(base, patch)) as offline, Client(server) as online:
        assert offline.tags() == [item for item in online.tags() if item["name"] in (base, patch)]
        for names in ([base], [patch], [patch, base], [base, patch]):
            tags = offline.tag(*names), online.tag(*names)
            for moment, strict in itertools.product(moments, (False, True)):
                found, expected = (tag.resolve(moment, strict=strict) for tag in tags)
                assert (dict(found), found.revisions) == (dict(expected), expected.revisions)
            for window, types in itertools.product(windows, ([], ["Zero"])):
                assert tags[0].iovs(*types, **window) == tags[1].iovs(*types, **window)


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
    killed = subprocess.run([sys.executable, "-c", CREATE_AND_DIE, server, path, tag])
    assert killed.returncode == -signal.SIGKILL and not path.exists() and part.exists()
    later = {"payload_type": "Gain", "payload_url": "later", "checksum": "", "since": [0, 1], "until": [5, 0]}
    api("POST", "payload-iovs/insert", [{"global_tag": tag, **later}])
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
    [new], [old] = snapshot.info(make(tag, name="again.cdb", restart=True))["tags"], snapshot.info(path)["tags"]
    assert new["revision"] == old["revision"] + 1
    past = make(name="past.cdb", revs={tag: old["revision"]})
    assert snapshot.info(past)["checksum"] == snapshot.info(path)["checksum"]
    assert not list(path.parent.glob("*.part*"))


@contextmanager
def cutting(port, cuts):
    """A proxy that breaks the connections of the exports that `cuts` says. Yields its address."""

    class Cut(socketserver.StreamRequestHandler):
        def handle(self):
            with socket.create_connection(("127.0.0.1", port)) as upstream, upstream.makefile("rb") as received:
                head = b"".join(iter(self.rfile.readline, b"\r\n"))
                upstream.sendall(head + b"Connection: close\r\n\r\n")
                is_cut = b"/export?" in head and next(cuts, False)
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
    with cutting(service.port, iter([True, True])) as address:
        repeated = make(tag, address=address)
    assert snapshot.verify(repeated)["checksum"] == snapshot.info(make(tag, name="two.cdb"))["checksum"]
    with (
        cutting(service.port, itertools.repeat(True)) as address,
        pytest.raises(UnavailableError, match="Try again later"),
    ):
        make(tag, address=address, name="never.cdb", retry_for=1)


def test_damage_and_other_versions_are_reported(api, make, tmp_path):
    path = make(api.make_tag(list(random_rows(10))))
    content, damaged = path.read_bytes(), tmp_path / "damaged.cdb"
    changed = content.replace(b" 1.root", b" 9.root"), content.replace(b'"created"', b'"creatod"')
    for bad in {*changed, content[: len(content) // 2], b"SQLite format 3\0" + bytes(100)}:
        damaged.write_bytes(bad)
        with pytest.raises(DataError, match=re.escape(str(damaged))):
            snapshot.verify(damaged)
    shutil.copy(path, damaged)
    sqlite3.connect(damaged, isolation_level=None).execute("PRAGMA user_version = 2")
    with pytest.raises(DataError, match=r"schema version 2.*another version"):
        SnapshotFile(damaged)


def test_a_served_snapshot_answers_existing_clients(service, api, make):
    tag = api.make_tag(list(random_rows(11)), status="locked")
    with snapshot_server.make_server(make(tag), 0) as server, in_thread(server):
        ports = server.server_address[1], service.port
        job, lookup = CppClient(ports[0]), f"payloadiovs/?gtName={tag}&majorIOV=3&minorIOV=20"
        assert job.payloads(tag, 3, 20) == CppClient(service.port).payloads(tag, 3, 20) != {}
        assert job.get("globalTags") == [one for one in JobClient(service.port).get("globalTags") if one["name"] == tag]
        assert job.get(f"globalTag/{tag}")["status"]["name"] == "locked"
        for path in ["gtstatus", "pt", "user_settings/CDB_IOV_MODE", f"gtPayloadLists/{tag}", f"{lookup}&shape=dict"]:
            found, expected = (requests.get(f"http://127.0.0.1:{port}{PREFIX}{path}", timeout=60) for port in ports)
            assert found.content == expected.content
            assert found.headers.get("CDB-Revision") == expected.headers.get("CDB-Revision")


def test_a_served_snapshot_refuses_what_it_does_not_have(api, make):
    tag = api.make_tag([("Gain", "u", [1, 0], [9, 0])])
    lookup = f"payloadiovs/?gtName={tag}&majorIOV=3&minorIOV=0"
    with snapshot_server.make_server(make(tag, since=Moment(2, 0)), 0) as server, in_thread(server):
        job = JobClient(server.server_address[1])
        for expected, paths in {
            (404, "outside_snapshot"): [
                lookup.replace(tag, "nix"),
                lookup.replace("IOV=3", "IOV=1"),
                f"{lookup}&rev=9",
            ],
            (404, "not_found"): [f"{lookup}&payloadType=Nix", "user_settings/CDB_SECRET_KEY", "piov"],
            (400, "invalid_input"): [f"{lookup}{more}" for more in (f"&gtName={tag}", "&at=now", "&strict=maybe", "x")],
        }.items():
            for path in paths:
                status, error = job.call("GET", path)
                assert (status, error["code"]) == expected, path
        assert job.call("POST", "gt", {})[0] == 405
