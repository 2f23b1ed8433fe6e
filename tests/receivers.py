"""Receivers of webhooks for tests: real servers, which note what they get."""

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook


class Receiver:
    """A server on a port of 127.0.0.1 that responds as `behaves` says: a status, or a function of the request handler."""

    def __init__(self, behaves=200, certificate=None):
        self.behaves, self.requests, self.secret = behaves, [], None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((dict(self.headers), body))
                if callable(outer.behaves):
                    outer.behaves(self)
                    return
                self.send_response(outer.behaves)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http{'s' if certificate else ''}://localhost:{self.port}/hook?x=1"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()

    def changes(self, secret):
        """The changes of all requests, in order, whose signatures are right: (tag, revision)."""
        documents = [Webhook(secret).verify(body, headers) for headers, body in list(self.requests)]
        return [(one["global_tag"], one["revision"]) for document in documents for one in document["changes"]]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def drip(handler):
    """Respond so slowly that each part is in time, but not the whole."""
    for byte in b"HTTP/1.1 200 OK\r\n" + b"a" * 1000:
        try:
            handler.wfile.write(bytes([byte]))
        except OSError:
            return
        time.sleep(0.1)
