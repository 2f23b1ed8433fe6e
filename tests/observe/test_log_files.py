"""Log files and standard error as destinations: an error while writing a log record fails no request."""

import logging
import os
import threading

import pytest

from cdb_rest.observe.log_files import LogFile
from tests.observe.conftest import LOOKUP


@pytest.mark.django_db
def test_a_full_disk_under_the_log_fails_no_request(ask, build):
    build.tag()
    service, _ = ask(CDB_LOG_FILE="/dev/full")
    assert service("GET", LOOKUP)[0] == 200
    logging.getLogger("cdb").error("lost")


def test_a_log_pipe_without_a_reader_fails_no_request(records):
    reading, writing = os.pipe()
    records(CDB_LOG_FILE=f"/dev/fd/{writing}")
    logging.getLogger("cdb").error("read")
    assert b'"read"' in os.read(reading, 4096)
    os.close(reading)
    logging.getLogger("cdb").error("lost")
    os.close(writing)


def test_a_file_that_can_not_be_opened_leaves_standard_error(tmp_path, capfd):
    LogFile(tmp_path / "missing" / "log").msg(b"line\n")
    assert capfd.readouterr().err == "line\n"


def test_a_file_that_was_renamed_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("cdb_rest.observe.log_files.CHECK_INTERVAL_SECONDS", 0)
    lines = LogFile(tmp_path / "log")
    lines.msg(b"1\n")
    (tmp_path / "log").rename(tmp_path / "log.1")
    lines.msg(b"2\n")
    assert ((tmp_path / "log.1").read_text(), (tmp_path / "log").read_text()) == ("1\n", "2\n")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_lines_of_threads_do_not_mix_while_the_file_is_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr("cdb_rest.observe.log_files.CHECK_INTERVAL_SECONDS", 0.001)
    lines = LogFile(tmp_path / "log")

    def write(thread):
        for number in range(500):
            lines.msg(f"{thread}-{number} {'x' * 500}\n".encode())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        if (tmp_path / "log").exists():
            (tmp_path / "log").rename(tmp_path / f"log.{turn}")
    for thread in threads:
        thread.join()
    found = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert sorted(line.split()[0] for line in found) == sorted(
        f"{thread}-{number}" for thread in range(4) for number in range(500)
    )
    assert all(line.endswith("x" * 500) for line in found)
