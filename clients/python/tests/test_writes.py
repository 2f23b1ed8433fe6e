"""Writes: single ones, imports, and what happens to them if the service or the token goes away."""

import hashlib
import json
import threading

import pandas
import pytest
import requests

from cdb_client import writes as module
from cdb_client.config import read_config
from cdb_client.errors import InputError, NotAllowedError, NotFoundError, RefusedError
from cdb_client.moments import Moment
from cdb_client.payload import PayloadIOV
from cdb_client.tag import IOVs
from cdb_client.transport import Transport
from cdb_client.writes import Writes

from .conftest import Api

COLUMNS = "payload_type,payload_url,checksum,size,major_iov,minor_iov,major_iov_end,minor_iov_end"
GOOD = "PED,x,,0,5,0,6,0"


@pytest.fixture
def writes(server):
    return Writes(Transport(read_config(server)))


@pytest.fixture
def tag(api):
    """A new tag, and the payload type PED."""
    return api.make_tag([("PED", "ped/0.root", [0, 0], [1, 0])])


def rows_of(count, **more):
    return [
        {"payload_type": "PED", "payload_url": f"ped/{n}.root", "since": (n, 0), "until": (n + 1, 0)} | more
        for n in range(1, count + 1)
    ]


def export_of(api, tag, **query):
    return requests.get(f"{api.base}global-tags/{tag}/export", params=query, timeout=60).text


def test_an_insertion(writes, api, tag, tmp_path):
    (tmp_path / "ped.root").write_bytes(b"content")
    row = (tag, "PED", "ped/1.root", (5, 0), (7, "end"))
    assert writes.insert(*row, file=tmp_path / "ped.root", dry_run=True)["dry_run"]
    assert writes.insert(*row, file=tmp_path / "ped.root", comment="why")["revisions"][tag] == 3
    assert f"ped/1.root,{hashlib.md5(b'content', usedforsecurity=False).hexdigest()},7,5,0,8,0" in export_of(api, tag)
    assert api("GET", f"global-tags/{tag}/changes/3")["comment"] == "why"
    with pytest.raises(NotFoundError, match=f"tag {tag}, payload type NONE, moment 5,0"):
        writes.insert(tag, "NONE", "ped/1.root", "5", "next")
    with pytest.raises(InputError, match="cannot be read"):
        writes.insert(*row, file=tmp_path / "none.root")
    writes.set_status(tag, "locked")
    assert writes.insert(tag, "PED", "x", "0", "1", dry_run=True)["refused"]["code"] == "iov_overlap"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_is_imported_as_it_was(writes, api, tag, tmp_path, form, monkeypatch):
    monkeypatch.setattr(module, "REQUEST_ROWS", 3)
    writes.import_rows(
        tag, [*rows_of(7, checksum='äb,"1', size=5, revision="3"), {"payload_type": "PED", "url": "last", "since": "9"}]
    )
    file = tmp_path / f"rows.{form}"
    file.write_text(export_of(api, tag, format=form))
    copy, counts = api.make_tag([]), []
    assert writes.import_rows(copy, file, dry_run=True)["inserted"] == 9 and export_of(api, copy).count("\n") == 1
    done = writes.import_rows(copy, str(file), comment="move", progress=lambda *numbers: counts.append(numbers))
    assert (done["inserted"], done["revision"], counts) == (9, 4, [(3, 9), (6, 9), (9, 9)])
    assert export_of(api, copy) == export_of(api, tag)
    again = writes.import_rows(copy, file)
    assert (again["inserted"], again["unchanged"], again["revision"]) == (0, 9, None)


def test_data_frames(writes, api, tag):
    frame = pandas.DataFrame(rows_of(3)).assign(size=[1, None, 3])
    assert writes.import_rows(tag, frame)["inserted"] == 3
    copy = api.make_tag([])
    iovs = [PayloadIOV("PED", f"ped/{n}.root", "", n, Moment(n, 0), Moment(n + 1, 0), None) for n in range(3)]
    assert writes.import_rows(copy, IOVs(iovs).to_pandas())["inserted"] == 3
    frame = pandas.DataFrame({"payload_type": ["PED"], "payload_url": ["x"], "major_iov": [2.5], "minor_iov": [0]})
    with pytest.raises(InputError, match=r"row 1: since: "):
        writes.import_rows(copy, frame)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{COLUMNS}\n{GOOD}\nPED,x,\n", "line 3: It has not as many fields"),
        (json.dumps(rows_of(1)[0]) + "\n\n{]\n", "line 3: "),
        (f"{COLUMNS},mode\n{GOOD},discrete\n", "line 2: .*mode discrete"),
        ("one,two\n", "neither JSON Lines nor CSV"),
        ("\0", "neither"),
    ],
)
def test_files_that_are_no_rows_are_not_sent(writes, api, tag, tmp_path, text, message):
    file = tmp_path / "rows"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        writes.import_rows(tag, file)
    assert export_of(api, tag).count("\n") == 2


def test_lines_that_the_service_refuses_are_named(writes, api, tag, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "REQUEST_ROWS", 2)

    def check(error, message, *lines, to=tag):
        file = tmp_path / "rows.csv"
        file.write_text("\n".join([COLUMNS, *lines, ""]))
        for dry_run in (True, False):
            with pytest.raises(error, match=message):
                writes.import_rows(to, file, dry_run=dry_run)

    check(InputError, r"rows\.csv, line 2: since: .*line 3: until: .*tag", GOOD.replace("5", "five"), GOOD[:-1])
    check(InputError, rf"rows\.csv, line 5: .*tag {tag}", GOOD, GOOD, GOOD, "PED,x,,0,6,0,6,0")
    assert export_of(api, tag).count("\n") == 3
    check(NotFoundError, r"line 3: .*NONE", GOOD, GOOD.replace("PED", "NONE"))
    check(NotFoundError, "nowhere", GOOD, to="nowhere")
    writes.set_status(tag, "locked")
    check(RefusedError, r"line 3: .*overlaps", GOOD, GOOD.replace("x", "y"))


def test_a_service_that_is_killed_during_an_import_stores_no_row_twice(fresh, monkeypatch):
    monkeypatch.setattr(module, "REQUEST_ROWS", 500)
    service = fresh().start()
    api = Api(f"http://127.0.0.1:{service.port}")
    tag = api.make_tag([("PED", "ped/0.root", [0, 0], [1, 0])])
    threads = []

    def restart():
        service.kill_everything()
        service.start()

    def progress(done, total):
        if done == 500:
            restart()
        if done == 1500:
            # Probably during the next request.
            threads.append(threading.Timer(0.1, restart))
            threads[-1].start()

    writes = Writes(Transport(read_config(f"http://127.0.0.1:{service.port}")))
    done = writes.import_rows(tag, rows_of(3000), progress=progress)
    threads[0].join()
    assert (done["inserted"], done["unchanged"], done["revision"]) == (3000, 0, 8)
    urls = [line.split(",")[1] for line in export_of(api, tag).splitlines()[1:]]
    assert urls == [f"ped/{n}.root" for n in range(3001)]


def test_a_token_that_is_replaced_during_an_import(fresh, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "REQUEST_ROWS", 10)
    service = fresh(CDB_OPEN_WRITES="false").start()
    server, file = f"http://127.0.0.1:{service.port}", tmp_path / "token"

    def new_token(name):
        file.write_text(service.manage("token", "create", "--name", name, "--role", "publisher").stdout)
        return {"Authorization": f"Bearer {file.read_text().strip()}"}

    def revoke(name, headers):
        service.manage("token", "revoke", name)
        while requests.get(f"{service.url}whoami", headers=headers, timeout=60).status_code == 200:
            pass

    with pytest.raises(NotAllowedError, match="cdb login"):
        Writes(Transport(read_config(server))).create_type("PED")
    monkeypatch.setenv("CDB_TOKEN_FILE", str(file))
    tokens = [new_token("first")]
    writes = Writes(Transport(read_config(server)))
    writes.create_type("PED")
    writes.create_tag("mine")

    def progress(done, total):
        # Another program replaces the token, and the first one is not valid any more.
        if done == 10:
            tokens.append(new_token("second"))
            revoke("first", tokens[0])

    assert writes.import_rows("mine", rows_of(30), progress=progress)["inserted"] == 30
    with pytest.raises(NotAllowedError, match=r"cdb login.* 10 rows before this request are stored"):
        writes.import_rows("mine", rows_of(30, payload_url="y"), progress=lambda *_: revoke("second", tokens[1]))
