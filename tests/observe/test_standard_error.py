"""Log records on standard error, whether a program reads it or not."""

import subprocess
import sys
import time

from cdb.env import ROOT

RECORDS = 5000
PROGRAM = f"""
import sys
from cdb_rest.observe.log_files import LogFile
lines = LogFile(None)
for number in range({RECORDS}):
    lines.msg(b"%d %s\\n" % (number, b"x" * int(sys.argv[1])))
"""


def start(length=200):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(length)], cwd=ROOT, stderr=subprocess.PIPE, bufsize=0)


def numbers(text):
    return [int(line.split()[0]) for line in text.splitlines()]


def test_a_reader_of_standard_error_that_sleeps_blocks_no_request():
    with start() as process:
        try:
            assert process.wait(30) == 0
            # Those that it finds when it wakes are whole, and the first ones.
            found = numbers(process.stderr.read())
            assert found == list(range(len(found))) and 100 < len(found) < RECORDS
        finally:
            process.kill()


def test_a_reader_that_sleeps_blocks_no_request_with_long_records():
    with start(length=10_000) as process:
        try:
            assert process.wait(30) == 0
            lines = process.stderr.read().splitlines()
            # The last one is torn.
            assert [line.split() for line in lines[:-1]] == [
                [b"%d" % number, b"x" * 10_000] for number in range(len(lines) - 1)
            ]
        finally:
            process.kill()


def test_one_that_is_slow_gets_everything():
    with start() as process:
        found = b""
        while piece := process.stderr.read(65536):
            found += piece
            time.sleep(0.02)
        assert numbers(found) == list(range(RECORDS))
