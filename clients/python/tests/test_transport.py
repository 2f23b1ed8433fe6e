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
