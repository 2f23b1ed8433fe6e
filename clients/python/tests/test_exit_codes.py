"""Every exit code of the command, by a real cause; an error is one line on stderr that says what and what to do."""

import hashlib
import http.server
import io
import signal
import threading

import pytest


@pytest.fixture
def other_server():
    """The address of a web server that is no cdb service, and which is not available at /503."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(503 if self.path == "/503" else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def check(done, code, *texts):
    """One line on stderr, without a traceback."""
    assert done.code == code, done
    [line] = done.err.splitlines()
    assert line.startswith("cdb: ")
    assert all(text in line for text in texts), line


def test_1_a_server_that_is_no_cdb_service(cdb, other_server, tmp_path):
    check(cdb("tags", "--server", other_server), 1, other_server)
    check(cdb("export", "tiny", tmp_path / "tiny.csv", "--server", other_server), 1, other_server)
    assert list(tmp_path.iterdir()) == []


USAGE = """\
resolve tiny
resolve tiny five
resolve tiny 5 --nope
nope
tags -o xml
uses
tags --server nowhere
resolve tiny@2026-01-01,tiny 5
log tiny --snapshot FILE
log tiny@1
tags --server http://127.0.0.1:port
insert tiny Pixel_Alignment x.root --since 5,x --until open --dry-run"""


@pytest.mark.parametrize("line", USAGE.splitlines())
def test_2_usage(cdb, line, tmp_path):
    if "FILE" in line:
        assert cdb("snapshot", "create", "--tag", "tiny", tmp_path / "FILE").code == 0
    check(cdb(*line.replace("FILE", str(tmp_path / "FILE")).split()), 2)


def test_3_a_write_without_a_token_with_a_wrong_one_and_after_login(cdb, fresh, monkeypatch):
    with fresh(CDB_OPEN_WRITES="false").running() as service:
        monkeypatch.setenv("CDB_SERVER", f"http://127.0.0.1:{service.port}")
        check(cdb("lock", "tiny"), 3, "cdb login")
        monkeypatch.setattr("sys.stdin", io.StringIO("cdb_wrong\n"))
        check(cdb("login"), 3)
        token = service.manage("token", "create", "--name", "robot", "--role", "manager").stdout
        monkeypatch.setattr("sys.stdin", io.StringIO(token))
        assert "robot" in cdb("login").err
        assert cdb("lock", "tiny").code == 0


@pytest.mark.parametrize(
    "line", ["resolve nowhere 5", "resolve tiny 5 --type Nope", "show tiny@99", "log nowhere", "--snapshot no.cdb tags"]
)
def test_4_not_found(cdb, line):
    check(cdb(*line.split()), 4)


def test_4_a_payload_type_without_a_payload(cdb, server):
    check(cdb("resolve", "tiny", "0", "--type", "Pixel_Alignment"), 4, "Pixel_Alignment", server, "tiny", "0,0")


def test_5_refused_by_the_state_of_the_tag(cdb, api):
    tag = api.make_tag([("Refused_A", "one.root", [1, 0], "open")], status="frozen")
    write = ("insert", tag, "Refused_A", "two.root", "--since", "5", "--until", "open")
    check(cdb(*write), 5, "frozen", tag)
    check(cdb(*write, "--dry-run"), 5, "frozen", tag)
    check(cdb("unlock", tag), 5, "frozen")


def test_6_a_wrong_file_is_not_stored(cdb, api, tmp_path, monkeypatch):
    monkeypatch.setenv("CDB_PAYLOAD_BASE_URL", str(tmp_path))
    row = ("Get_A", "one.root", [1, 0], "open", {"checksum": hashlib.sha256(b"calibration").hexdigest()})
    get = ("get", api.make_tag([row]), "5", "--to", tmp_path / "to")
    check(cdb(*get), 6, "one.root")
    (tmp_path / "one.root").write_bytes(b"calibratiox")
    check(cdb(*get), 6, "one.root")
    assert [path for path in (tmp_path / "to").rglob("*") if path.is_file()] == []


def test_6_outside_of_a_snapshot_and_a_damaged_one(cdb, tmp_path):
    file = tmp_path / "tiny.cdb"
    options = ("--since", "5", "--until", "20", "--type", "Pixel_Alignment")
    assert cdb("snapshot", "create", "--tag", "tiny", *options, file).code == 0
    check(cdb("--snapshot", file, "resolve", "tiny", "30"), 6, "30,0")
    check(cdb("--snapshot", file, "resolve", "other", "5"), 6, "other")
    check(cdb("--snapshot", file, "resolve", "tiny", "5", "--type", "Cherenkov_Alignment"), 6, "Cherenkov_Alignment")
    assert cdb("snapshot", "verify", file).code == 0
    file.write_bytes(file.read_bytes().replace(b"Pixel", b"Pizel"))
    check(cdb("snapshot", "verify", file), 6, str(file))


def test_75_try_later_after_retries_that_are_announced(cdb):
    check(cdb("--server", "http://127.0.0.1:1", "tags", "--retry-for", "0"), 75, "127.0.0.1:1", "later")
    done = cdb("tags", "--server", "http://127.0.0.1:1", "--retry-for", "2")
    assert done.code == 75 and done.out == ""
    announced, given_up = done.err.splitlines()
    assert "trying again for 2 s" in announced and "gave up" in given_up


@pytest.mark.parametrize("is_down", [True, False])
def test_130_ctrl_c_while_it_tries_again(start, api, other_server, tmp_path, is_down):
    """The service, or the server of payload files, does not answer."""
    tag = api.make_tag([("Get_B", f"{other_server}/503", [1, 0], "open")])
    down = {"CDB_SERVER": "http://127.0.0.1:1"} if is_down else {}
    process = start("get", tag, "5", "--to", tmp_path / "to", **down)
    assert "trying again" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "cdb: interrupted\n") and process.returncode == 130
    assert [path for path in (tmp_path / "to").rglob("*") if path.is_file()] == []
