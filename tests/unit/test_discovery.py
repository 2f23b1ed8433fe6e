"""Documents of an issuer: whatever it sends is an `OSError` or a `ValueError`, and nothing is read without TLS."""

import socket
import threading
from urllib.error import HTTPError

import pytest

from cdb_rest.access import discovery
from cdb_rest.access.issuers import Issuer


@pytest.fixture
def serve():
    """Serves one fixed response, to one request, on a port of this machine. Returns the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threads = []

        def respond(response):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(response)

        def start(response):
            threads.append(threading.Thread(target=respond, args=[response.replace(b"URL", url.encode())]))
            threads[-1].start()
            return url

        yield start
        for thread in threads:
            thread.join(60)


@pytest.mark.parametrize(
    "response",
    [
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1, 2",
        b"HTTP/1.1 200 OK\r\n\r\n" + 100_000 * b"[",
        b"HTTP/1.1 200 OK\r\n\r\n\xff",
        b"",
    ],
    ids=["status line", "chunks", "truncated", "deep", "encoding", "nothing"],
)
def test_an_invalid_response_has_one_of_the_documented_errors(serve, response):
    with pytest.raises((OSError, ValueError)):
        discovery.fetch_json(serve(response))


def test_a_redirect_is_not_followed(serve):
    with pytest.raises(HTTPError, match="302"):
        discovery.fetch_json(serve(b"HTTP/1.1 302 Found\r\nLocation: URL/elsewhere\r\nContent-Length: 0\r\n\r\n"))


@pytest.mark.parametrize("url", ["http://example.org/jwks", "ftp://127.0.0.1/jwks", "file:///etc/passwd", "", 1])
def test_an_endpoint_without_tls_is_refused(monkeypatch, url):
    issuer = Issuer(name="exp", issuer="https://exp.example.org", audience=("cdb",), algorithms=("RS256",))
    discovery.forget()
    document = {"issuer": issuer.issuer, "jwks_uri": url}
    monkeypatch.setattr(discovery, "fetch_json", lambda _: document)
    with pytest.raises(ValueError, match="jwks_uri"):
        discovery.endpoint(issuer, "jwks_uri")
    discovery.forget()
