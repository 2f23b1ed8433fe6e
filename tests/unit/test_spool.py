"""The temporary files of a worker, and their limits."""

import pytest

from cdb.worker.spool import Spool, SpoolFile, SpoolFullError


def test_the_spool_leaves_space_on_the_disk(tmp_path, monkeypatch):
    spool = Spool(tmp_path, 1 << 40, 1)
    file = SpoolFile(spool)
    file.append(b"abc")
    monkeypatch.setattr("cdb.worker.spool.FREE_BYTES_LEFT", 1 << 60)
    with pytest.raises(SpoolFullError):
        file.append(b"d")
    assert (file.read(2), file.read(10), len(file)) == (b"ab", b"c", 0)
    file.close()
    assert not list(tmp_path.iterdir()), "its files have no names"


def test_a_spool_that_can_hold_nothing_more_says_so(tmp_path):
    spool = Spool(tmp_path, 10, 1)
    one, other = SpoolFile(spool), SpoolFile(spool)
    one.append(b"12345678")
    with pytest.raises(SpoolFullError):
        other.append(b"123")
    assert one.read(8) and one.peek(1) == b""
    assert one._file is None, "it needs no file while it is empty"
    other.append(b"123")
    one.close()
    other.close()
    assert spool._bytes == 0
