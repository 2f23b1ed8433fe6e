"""An identity provider for tests."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "https://cdb.example.org"


class Provider:
    """An identity provider on this machine, with keys that can be rotated; `requests` are the paths that were asked for."""

    def __init__(self):
        self.requests = []
        self.answer = None
        self.private = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.requests.append(self.path)
                status, body = provider.answer(self.path) if provider.answer else (200, provider.document(self.path))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *values):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # A client that has given up.
        self.server.handle_error = lambda *values: None
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.add_key("first")

    def add_key(self, key_id, private=None):
        self.private[key_id] = private or rsa.generate_private_key(65537, 2048)

    def jwks(self):
        kinds = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256", ed25519.Ed25519PrivateKey: "EdDSA"}
        documents = []
        for key_id, private in self.private.items():
            name = next(name for kind, name in kinds.items() if isinstance(private, kind))
            algorithm = jwt.get_algorithm_by_name(name)
            documents.append(algorithm.to_jwk(private.public_key(), as_dict=True) | {"kid": key_id, "use": "sig"})
        return {"keys": documents}

    def document(self, path):
        found = self.jwks() if path == "/jwks" else {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        return json.dumps(found).encode()

    def token(self, key_id="first", algorithm="RS256", key=None, headers=None, **claims):
        now = int(time.time())
        usual = {
            "iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 3600, "groups": ["/exp/calib"],
        }  # fmt: skip
        claims = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(claims, key or self.private[key_id], algorithm, headers={"kid": key_id} | (headers or {}))
