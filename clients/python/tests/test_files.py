"""Payload files: addresses, verified downloads, and the cache that processes share."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cdb_client.config import read_config
from cdb_client.errors import DataError, InputError, MissingFileError, UnavailableError
from cdb_client.files import Files
from cdb_client.moments import OPEN, Moment
from cdb_client.payload import PayloadIOV
from cdb_client.transport import Transport

CONTENT = os.urandom(300_000)
CHECKSUMS = {
    **{name: hashlib.new(name, CONTENT).hexdigest() for name in ("md5", "sha1", "sha256")},
    "adler32": f"{zlib.adler32(CONTENT):08x}",
}


class FileServer:
    """A file server in this process. `files` has the contents by path; `asked` are the paths that were asked for."""

    def __init__(self, port=0):
        self.files, self.asked = {}, []
        # If it is set, each response ends after half of the file, which sets is_broken.
        self.breaks = threading.Event()
        self.is_broken = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                if content and outer.breaks.is_set():
                    self.wfile.write(content[: len(content) // 2])
                    outer.is_broken.set()
                elif content:
                    self.wfile.write(content)

            def log_message(self, *values):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def file_server():
    made = FileServer()
    made.files["/base/PED/one.root"] = CONTENT
    yield made
    made.stop()


@pytest.fixture
def files(server, file_server):
    return Files(read_config(server, payload_base=f"{file_server.url}/base"), setting=None)


def iov(url="PED/one.root", checksum="", size=0):
    return PayloadIOV("PED", url, checksum, size, Moment(1, 0), OPEN, None)


def left(directory):
    return [path for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("name", CHECKSUMS)
def test_each_form_of_a_checksum_is_verified(files, file_server, tmp_path, name):
    digits = CHECKSUMS[name]
    forms = [digits, digits.upper(), f"{name}:{digits}"] + ([f"ad:{digits}"] if name == "adler32" else [])
    for form in forms:
        path = files.fetch(iov(checksum=form, size=len(CONTENT)))
        assert path.read_bytes() == CONTENT and path.suffix == ".root"
        path.unlink()
    file_server.files["/base/PED/one.root"] = CONTENT[:-1] + b"\0" if CONTENT[-1:] != b"\0" else CONTENT[:-1] + b"\1"
    for form in forms:
        with pytest.raises(DataError, match="checksum"):
            files.fetch(iov(checksum=form))
    assert left(tmp_path) == []


def test_a_short_long_or_missing_file_leaves_nothing(files, file_server, tmp_path):
    for size in (len(CONTENT) + 1, len(CONTENT) - 1):
        with pytest.raises(DataError, match="bytes"):
            files.fetch(iov(checksum="other form", size=size))
    with pytest.raises(MissingFileError, match=r"PED/none\.root") as found:
        files.fetch(iov("PED/none.root"))
    assert found.value.exit_code == 6
    with pytest.raises(MissingFileError):
        files.fetch_all([iov(size=len(CONTENT)), iov("PED/none.root")], directory=tmp_path / "out")
    assert [path.name for path in left(tmp_path)] in ([], ["one.root"])


def test_a_file_server_that_breaks_off_and_comes_back(files, file_server, tmp_path):
    file_server.breaks.set()
    found = []
    job = threading.Thread(target=lambda: found.append(files.fetch(iov(checksum=CHECKSUMS["md5"]))))
    job.start()
    assert file_server.is_broken.wait(60)
    file_server.stop()
    again = FileServer(file_server.port)
    again.files = file_server.files
    job.join(120)
    again.stop()
    assert found[0].read_bytes() == CONTENT and len(left(tmp_path)) == 1


def test_a_file_server_that_stays_away_is_a_clear_error(server, tmp_path):
    files = Files(read_config(server, payload_base="http://127.0.0.1:1", retry_for=1), setting=None)
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
        files.fetch(iov())
    assert left(tmp_path) == []


def test_addresses(server, file_server, tmp_path):
    (tmp_path / "local file.root").write_bytes(CONTENT)
    local = Files(read_config(server, payload_base=str(tmp_path)), setting=None)
    for url in ("local file.root", f"file://{tmp_path}/local%20file.root", f"{file_server.url}/base/PED/one.root"):
        assert local.fetch(iov(url, "", len(CONTENT))).read_bytes() == CONTENT
    transport = Transport(read_config(server))
    asks = Files(transport.config, lambda name: transport.get(f"user_settings/{name}").json()[name])
    with pytest.raises(InputError, match="CDB_PAYLOAD_BASE_URL"):
        asks.fetch(iov())
    for url in ("../secret", "a/../../secret"):
        with pytest.raises(DataError, match="leads out"):
            local.fetch(iov(url))


def test_other_schemes_name_the_package_that_they_need(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="fsspec"):
        files.fetch(iov("root://storage.example.org//one.root"))


def test_files_of_a_directory_have_the_paths_of_their_urls(files, file_server, tmp_path):
    target = tmp_path / "out"
    urls = ["PED/one.root", "/PED/one.root", f"{file_server.url}/base/PED/one.root"]
    counts = []
    paths = files.fetch_all(
        [iov(url, CHECKSUMS["sha1"]) for url in urls],
        lambda done, total: counts.append((done, total)),
        directory=target,
    )
    assert paths == [
        target / "PED/one.root",
        target / "PED/one.root",
        target / f"127.0.0.1:{file_server.port}/base/PED/one.root",
    ]
    assert all(path.read_bytes() == CONTENT for path in paths) and counts[-1] == (3, 3)
    asked = len(file_server.asked)
    files.download(iov(checksum=CHECKSUMS["sha1"]), target)
    assert len(file_server.asked) == asked


def test_a_damaged_file_of_the_cache_is_replaced(files, server, file_server):
    wanted = iov(checksum=CHECKSUMS["md5"], size=len(CONTENT))
    path = files.fetch(wanted)
    assert files.fetch(wanted) == path and len(file_server.asked) == 1
    path.write_bytes(bytes(len(CONTENT)))
    again = Files(read_config(server, payload_base=f"{file_server.url}/base"), setting=None)
    assert again.fetch(wanted).read_bytes() == CONTENT and len(file_server.asked) == 2


SCRIPT = """
import os, sys
from cdb_client.config import read_config
from cdb_client.files import Files
from cdb_client.payload import PayloadIOV
files = Files(read_config(sys.argv[1], payload_base=sys.argv[2]), None)
wanted = PayloadIOV("PED", "PED/one.root", sys.argv[3], 0, (1, 0), (2, 0), None)
"""


def run(code, server, file_server):
    """A process that can be interrupted, also if pytest cannot."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT + code, server, f"{file_server.url}/base", CHECKSUMS["sha256"]],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_fifty_processes_download_a_file_once(server, file_server):
    fork = """
children = []
for _ in range(50):
    children.append(os.fork())
    if not children[-1]:
        os._exit(files.fetch(wanted).stat().st_size != 300_000)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""
    job = run(fork, server, file_server)
    assert job.wait(120) == 0, job.stderr.read()
    assert file_server.asked == ["/base/PED/one.root"]


def test_an_interrupted_download_leaves_nothing(server, file_server, tmp_path):
    file_server.breaks.set()
    job = run("files.fetch_all([wanted] * 20)", server, file_server)
    assert file_server.is_broken.wait(60)
    job.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in job.communicate(timeout=60)[1]
    assert left(tmp_path) == []


def test_the_files_that_were_not_used_for_longest_leave_the_cache(server, file_server, tmp_path):
    for number in range(4):
        file_server.files[f"/base/{number}"] = bytes([number]) * 1000
    files = Files(read_config(server, payload_base=f"{file_server.url}/base", cache_size=2500), setting=None)
    paths = [files.fetch(iov(f"{number}", size=1000)) for number in range(3)]
    assert all(path.exists() for path in paths)
    # As if they were used some hours ago; the second one longest ago.
    for path, hours in zip(paths, (3, 4, 2), strict=True):
        os.utime(path, (time.time() - hours * 3600,) * 2)
    files.fetch(iov("0", size=1000))
    files.fetch(iov("3", size=1000))
    assert [path.exists() for path in paths] == [True, False, False]


def test_a_cache_that_cannot_be_written_is_replaced(files, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert files.fetch(iov()).read_bytes() == CONTENT
