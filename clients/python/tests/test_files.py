"""Payload files: addresses, verified downloads, and the cache that processes share."""

import gzip
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

from cdb_client.client import Client
from cdb_client.config import read_config
from cdb_client.errors import DataError, InputError, UnavailableError
from cdb_client.files import Files
from cdb_client.moments import OPEN, Moment
from cdb_client.payload import PayloadIOV

CONTENT = os.urandom(300_000)
CHECKSUMS = {name: hashlib.new(name, CONTENT).hexdigest() for name in ("md5", "sha1", "sha256")}
CHECKSUMS["adler32"] = f"{zlib.adler32(CONTENT):08x}"
URL, PATH = "PED/one.root", "/base/PED/one.root"


class FileServer(ThreadingHTTPServer):
    """A file server. `files` has the contents by path; `asked` are the paths that were asked for."""

    def __init__(self, port=0):
        self.files, self.asked, self.encoding = {PATH: CONTENT}, [], None
        # If `breaks` is set, each response ends after half of the file, and then sets `is_broken`.
        self.breaks, self.is_broken = threading.Event(), threading.Event()
        super().__init__(("127.0.0.1", port), Handler)
        self.base = f"http://127.0.0.1:{self.server_port}/base"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()
        if self.server.breaks.is_set():
            self.wfile.write(content[: len(content) // 2])
            self.server.is_broken.set()
        elif content:
            self.wfile.write(content)

    def log_message(self, *values):
        pass


@pytest.fixture
def file_server():
    made = FileServer()
    yield made
    made.stop()


def files_of(base, **more):
    return Files(read_config("http://127.0.0.1:1", payload_base=str(base), **more), setting=None)


@pytest.fixture
def files(file_server):
    return files_of(file_server.base)


def iov(url=URL, checksum="", size=0):
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
    file_server.files[PATH] = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
    for form in forms:
        with pytest.raises(DataError, match="checksum"):
            files.fetch(iov(checksum=form, size=len(CONTENT)))
    assert left(tmp_path) == []


def test_the_bytes_of_a_file_are_not_decompressed(files, file_server):
    file_server.files["/base/a%23b.gz"] = content = gzip.compress(CONTENT)
    file_server.encoding = "gzip"
    assert files.fetch(iov("a#b.gz", size=len(content))).read_bytes() == content


def test_two_files_never_get_the_same_name(files, tmp_path):
    with pytest.raises(DataError, match="the same name"):
        files.download([iov("file:///a/x"), iov("a/x")], tmp_path / "out")
    assert left(tmp_path) == []


def test_a_short_long_or_missing_file_leaves_nothing(files, tmp_path):
    for size in (len(CONTENT) + 1, len(CONTENT) - 1):
        with pytest.raises(DataError, match="bytes"):
            files.fetch(iov(checksum="of another form", size=size))
    with pytest.raises(DataError, match=r"PED/none\.root"):
        files.download([iov("PED/none.root")] * 20, tmp_path / "out")
    assert left(tmp_path) == []


def test_a_file_server_that_breaks_off_and_comes_back(files, file_server, tmp_path):
    file_server.breaks.set()
    found = []
    job = threading.Thread(target=lambda: found.append(files.fetch(iov(checksum=CHECKSUMS["md5"]))))
    job.start()
    assert file_server.is_broken.wait(60)
    file_server.stop()
    again = FileServer(file_server.server_port)
    job.join(120)
    again.stop()
    assert found[0].read_bytes() == CONTENT and len(left(tmp_path)) == 1


def test_addresses(server, file_server, tmp_path, monkeypatch):
    (tmp_path / "local file.root").write_bytes(CONTENT)
    local = files_of(tmp_path)
    for url in ("local file.root", f"file://{tmp_path}/local%20file.root", f"{file_server.base}/{URL}"):
        assert local.fetch(iov(url, "", len(CONTENT))).read_bytes() == CONTENT
    with pytest.raises(DataError, match="leads out"):
        local.fetch(iov("a/../../secret"))
    with pytest.raises(InputError, match="CDB_PAYLOAD_BASE_URL"):
        Client(server).files.fetch(iov())
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
        files_of("http://127.0.0.1:1", retry_for=1).fetch(iov())
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="fsspec"):
        local.fetch(iov("root://storage.example.org//one.root"))


def test_files_of_a_directory_have_the_paths_of_their_urls(files, file_server, tmp_path):
    counts = []
    wanted = [iov(url, CHECKSUMS["sha1"]) for url in (URL, f"{file_server.base}/{URL}")]
    paths = files.download(wanted, tmp_path, lambda *numbers: counts.append(numbers))
    assert paths == [tmp_path / URL, tmp_path / f"127.0.0.1:{file_server.server_port}{PATH}"]
    assert all(path.read_bytes() == CONTENT for path in paths) and counts == [(1, 2), (2, 2)]
    files.download(wanted, tmp_path)
    assert len(file_server.asked) == 2
    # The file of this URL was replaced, and so is that of the directory.
    file_server.files[PATH] = b"new"
    files.download([iov(checksum=hashlib.sha256(b"new").hexdigest())], tmp_path)
    assert paths[0].read_bytes() == b"new"


def test_a_damaged_file_of_the_cache_is_replaced(files, file_server):
    wanted = iov(checksum=CHECKSUMS["md5"], size=len(CONTENT))
    path = files.fetch(wanted)
    assert files.fetch(wanted) == path and len(file_server.asked) == 1
    path.write_bytes(bytes(len(CONTENT)))
    assert files_of(file_server.base).fetch(wanted).read_bytes() == CONTENT and len(file_server.asked) == 2


SCRIPT = """
import os, sys
from pathlib import Path
from cdb_client.client import Client
from cdb_client.config import read_config
from cdb_client.files import Files
from cdb_client.payload import PayloadIOV
files = Files(read_config(payload_base=sys.argv[1]), None)
wanted = PayloadIOV("PED", "PED/one.root", sys.argv[2], 0, (1, 0), (2, 0), None)
"""
FORK = """
children = []
for _ in range(50):
    children.append(os.fork())
    if not children[-1]:
        os._exit(files.fetch(wanted).stat().st_size != 300_000)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def start_process(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT + code, *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        # It can be interrupted, also if pytest cannot.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_fifty_processes_download_a_file_once(file_server):
    job = start_process(FORK, file_server.base, CHECKSUMS["sha256"])
    assert job.wait(120) == 0, job.stderr.read()
    assert file_server.asked == [PATH]


def test_an_interrupted_download_leaves_nothing(file_server, tmp_path):
    file_server.breaks.set()
    job = start_process("files.download([wanted] * 20, Path(sys.argv[3]))", file_server.base, "", tmp_path / "out")
    assert file_server.is_broken.wait(60)
    job.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in job.communicate(timeout=60)[1]
    assert left(tmp_path) == []


def test_the_files_that_were_not_used_for_longest_leave_the_cache(file_server):
    file_server.files = {f"/base/{number}": bytes([number]) * 1000 for number in range(4)}
    files = files_of(file_server.base)
    paths = [files.fetch(iov(f"{number}", size=1000)) for number in range(3)]
    # As if they were used some hours ago; the second one longest ago.
    for path, hours in zip(paths, (3, 4, 2), strict=True):
        os.utime(path, (time.time() - hours * 3600,) * 2)
    # The first download of a process limits the cache.
    files = files_of(file_server.base, cache_size=2500)
    files.fetch(iov("0", size=1000))
    files.fetch(iov("3", size=1000))
    assert [path.exists() for path in paths] == [True, False, False]


def test_a_cache_that_cannot_be_written_is_replaced(files, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert files.fetch(iov()).read_bytes() == CONTENT
