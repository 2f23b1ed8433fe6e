"""Requests: retries, tokens and the messages of errors."""

import pytest

from cdb_client.config import read_config
from cdb_client.errors import NotFoundError, UnavailableError
from cdb_client.transport import Transport


def test_an_error_names_the_server_and_the_object(server):
    with pytest.raises(NotFoundError) as found:
        Transport(read_config(server)).get("globalTag/nowhere", [("light", "")], about="tag nowhere")
    assert server in str(found.value) and "tag nowhere" in str(found.value) and "\n" not in str(found.value)


def test_a_server_that_is_not_there_is_tried_until_the_time_is_over():
    transport = Transport(read_config("http://127.0.0.1:1", retry_for=1))
    with pytest.raises(UnavailableError, match="Try again later"):
        transport.get("pt")
    assert transport.requests > 1


def test_a_write_is_stored_once(server, api):
    name = api.make_tag([])
    transport = Transport(read_config(server))
    for _ in range(2):
        made = transport.write("POST", "gt", {"name": f"{name}b", "status": "unlocked"}, key=f"key-of-{name}")
        assert made["name"] == f"{name}b"
