"""Malformed requests as bytes that gunicorn and nginx reject alike, each with the status of the response."""

PREFIX = b"/api/cdb_rest/"


def request(method, path, headers=b"", body=b""):
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%s %s%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s" % (method, PREFIX, path, headers, length, body)


REFUSED = [
    (b"nonsense\r\n\r\n", 400),
    (b"GET / HTTP/9.9\r\n\r\n", 400),
    (b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n", 400),
    (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000 + b"\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400),
    (request(b"GET", b"globalTag/%ff%fe"), 404),
    (request(b"GET", b"globalTag/%00"), 400),
    (request(b"BREW", b"globalTags"), 405),
    (request(b"GET", b"nothing", b"SCRIPT_NAME: /foo\r\n"), 404),
]
