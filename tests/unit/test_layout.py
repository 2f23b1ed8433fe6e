"""The lock on the directories of `make serve`."""

import pytest

from cdb.env import ConfigurationError
from cdb.serving import layout


@pytest.fixture(autouse=True)
def directories(monkeypatch, tmp_path):
    for name in ("directory", "sockets", "pooler_sockets", "temporary"):
        path = tmp_path / name
        monkeypatch.setattr(layout, name, lambda path=path: path)


def test_the_process_number_of_a_killed_service_is_removed():
    layout.directory().mkdir()
    (layout.directory() / layout.PID_FILE).write_text("1\n")
    with layout.locked():
        assert not (layout.directory() / layout.PID_FILE).exists()


def test_a_second_service_is_refused_and_leaves_the_files_of_the_first():
    with layout.locked():
        (layout.directory() / layout.PID_FILE).write_text("1\n")
        with pytest.raises(ConfigurationError, match="another make serve uses"), layout.locked():
            pytest.fail("the lock is not exclusive")
        assert layout.temporary().exists() and (layout.directory() / layout.PID_FILE).exists()


def test_an_error_inside_of_the_block_is_not_mistaken_for_another_service():
    with pytest.raises(BlockingIOError), layout.locked():
        raise BlockingIOError
