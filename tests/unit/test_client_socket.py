"""Responses to clients that receive slowly."""

from time import monotonic

import pytest

from cdb.worker import client_socket
from tests.unit.worker_sockets import connected


def test_a_response_goes_to_the_client_that_takes_it():
    with connected() as (reader, client):
        reader.sock.sendall(b"small")
        assert client.recv(100) == b"small" and not reader.sock.unsent


@pytest.mark.parametrize("patience", [0.0, 0.2])
def test_data_that_the_client_does_not_receive_yet_is_in_a_file(patience):
    data = bytes(range(256)) * 20_000
    with connected() as (reader, client):
        reader.sock.begin_response(patience)
        reader.sock.sendall(b"head")
        reader.sock.sendall(data[:3_000_000])
        assert reader.sock.unsent > 1_000_000
        reader.sock.sendall(data[3_000_000:])
        received = b""
        client.settimeout(10)
        while len(received) < len(data) + 4:
            received += client.recv(300_000)
            reader.sock.flush()
        assert received == b"head" + data and not reader.sock.unsent
        # And the next response needs no file.
        reader.sock.sendall(b"next")
        assert client.recv(100) == b"next"


def test_the_time_for_waiting_is_that_of_a_whole_response():
    with connected() as (reader, client):
        reader.sock.begin_response(0.2)
        reader.sock.sendall(b"head")
        reader.sock.sendall(bytes(3_000_000))
        client.settimeout(10)
        received = 0
        while received < 3_000_004:
            received += len(client.recv(300_000))
            reader.sock.flush()
        # The client has taken everything, but the time is used up.
        before = monotonic()
        reader.sock.sendall(bytes(3_000_000))
        assert reader.sock._wait_seconds <= 0 and monotonic() - before < 0.2


def test_without_room_in_the_spool_the_thread_waits_for_the_client(monkeypatch):
    monkeypatch.setattr(client_socket, "STALL_TIMEOUT_SECONDS", 0.2)
    with connected(most_spooled=0) as (reader, client):
        with pytest.raises(ConnectionResetError, match="received nothing"):
            reader.sock.sendall(bytes(10_000_000))
        with reader.sock._spool.waiting, pytest.raises(ConnectionResetError, match="too many threads"):
            reader.sock.sendall(bytes(10_000_000))
        client.close()
        with pytest.raises(OSError, match="Broken pipe"):
            reader.sock.sendall(bytes(10_000_000))


def test_the_head_of_a_response_is_sent_with_the_first_piece_of_its_body():
    with connected() as (reader, client):
        client.setblocking(False)
        reader.sock.begin_response(0.0)
        reader.sock.sendall(b"head ")
        with pytest.raises(BlockingIOError):
            client.recv(100)
        reader.sock.sendall(b"body")
        assert client.recv(100) == b"head body"
        reader.sock.end_response()
        with pytest.raises(BlockingIOError):
            client.recv(100)


def test_the_head_of_a_response_without_a_body_is_sent_at_its_end():
    with connected() as (reader, client):
        reader.sock.begin_response(0.0)
        reader.sock.sendall(b"head")
        reader.sock.end_response()
        assert client.recv(100) == b"head"


def test_a_head_is_not_copied_before_a_large_piece(monkeypatch):
    with connected() as (reader, client):
        data = bytes(client_socket.COALESCE_BYTES + 1)
        lengths = []
        send = client_socket.ClientSocket.send
        monkeypatch.setattr(
            client_socket.ClientSocket,
            "send",
            lambda self, data, *flags: lengths.append(len(data)) or send(self, data, *flags),
        )
        reader.sock.begin_response(0.0)
        reader.sock.sendall(b"head")
        reader.sock.sendall(data)
        received = b""
        while len(received) < len(data) + 4:
            received += client.recv(300_000)
            reader.sock.flush()
        assert received == b"head" + data and lengths[0] == 4
