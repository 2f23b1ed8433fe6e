"""Tokens (JWT) of identity providers: forged, stale and foreign ones, their claims, and their keys."""

import base64
import json
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest import mark, param

from cdb_rest.identity import attempts, discovery, issuers, jwt_tokens, keys, rules
from cdb_rest.models import GlobalTagChange, RevokedToken
from cdb_rest.services import access

pytestmark = pytest.mark.django_db(transaction=True)

AUDIENCE = "https://cdb.example.org"
SECRET = "the shared secret of a site that comes from nopayloaddb"
LOCK = "gt_change_status/run24/locked"


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
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "alice",
            "iat": now,
            "exp": now + 3600,
            "groups": ["/exp/calib"],
        }
        claims = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(claims, key or self.private[key_id], algorithm, headers={"kid": key_id} | (headers or {}))


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def configure(settings, tmp_path):
    """Writes the file of issuers and forgets all that was known about them."""

    def write(text):
        (tmp_path / "issuers.toml").write_text(text)
        settings.CDB_ISSUERS_FILE = str(tmp_path / "issuers.toml")
        issuers.configured.cache_clear()
        keys.forget()
        discovery.forget()
        jwt_tokens.forget()

    settings.CDB_OPEN_WRITES = False
    settings.DATA_DIR = tmp_path / "data"
    yield write
    issuers.configured.cache_clear()
    keys.forget()
    discovery.forget()
    jwt_tokens.forget()


@pytest.fixture
def trusted(provider, configure, world):
    configure(f'[exp]\nissuer = "{provider.url}"\naudience = "{AUDIENCE}"\nalgorithms = ["RS256", "ES256", "EdDSA"]\n')
    grant(kind="claim", issuer="exp", claim="groups", subject="/exp/calib", role="manager")
    return provider


def grant(**values):
    access.grant(actor="test", **values)
    rules.forget()


@pytest.fixture
def lock(api):
    """Locks a tag with a token."""
    return lambda token: api.put(LOCK, Authorization=f"Bearer {token}")


def test_a_valid_token_permits_what_the_rules_for_its_claims_say(trusted, lock):
    lock(trusted.token()).ok()
    assert GlobalTagChange.objects.latest("id").actor == "exp:alice"
    assert trusted.requests == ["/.well-known/openid-configuration", "/jwks"]
    lock(trusted.token(groups=["/exp"])).error(403, "not_permitted")
    lock(trusted.token(groups=["/exp/calib/sub"])).error(403, "not_permitted")
    lock(trusted.token(groups=None)).error(403, "not_permitted")
    # The keys are remembered.
    assert len(trusted.requests) == 2


@mark.parametrize(
    ("algorithm", "private"),
    [param("ES256", ec.generate_private_key(ec.SECP256R1())), param("EdDSA", ed25519.Ed25519PrivateKey.generate())],
)
def test_other_algorithms(trusted, lock, algorithm, private):
    trusted.add_key("other", private)
    lock(trusted.token("other", algorithm)).ok()


def unsigned(provider):
    _, payload, _ = provider.token().split(".")
    return f"{encode({'alg': 'none', 'typ': 'JWT', 'kid': 'first'})}.{payload}."


def signed_with_the_public_key(provider):
    """RS/HS confusion: the public key as the secret of HS256. PyJWT refuses to make such a token."""
    from cryptography.hazmat.primitives import hashes, hmac
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = provider.private["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _, payload, _ = provider.token().split(".")
    header = encode({"alg": "HS256", "typ": "JWT", "kid": "first"})
    mac = hmac.HMAC(public, hashes.SHA256())
    mac.update(f"{header}.{payload}".encode())
    return f"{header}.{payload}.{base64.urlsafe_b64encode(mac.finalize()).rstrip(b'=').decode()}"


def encode(document):
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def changed(provider):
    header, payload, signature = provider.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return f"{header}.{encode(claims | {'sub': 'root'})}.{signature}"


def forged_header(provider, **header):
    return f"{encode({'alg': 'RS256', 'kid': 'first'} | header)}.{provider.token().split('.')[1]}.x"


HOUR = 3600
FORGED = {
    "another key": lambda one: one.token(key=rsa.generate_private_key(65537, 2048)),
    "expired": lambda one: one.token(exp=int(time.time()) - HOUR),
    "no expiry": lambda one: one.token(exp=None),
    "not yet valid": lambda one: one.token(nbf=int(time.time()) + HOUR),
    "issued in the future": lambda one: one.token(iat=int(time.time()) + HOUR),
    "another audience": lambda one: one.token(aud="https://other.example.org"),
    "no audience": lambda one: one.token(aud=None),
    "another issuer": lambda one: one.token(iss="https://evil.example.org"),
    "no issuer": lambda one: one.token(iss=None),
    "an issuer that is a list": lambda one: f"{encode({'alg': 'RS256'})}.{encode({'iss': [one.url]})}.x",
    "no subject": lambda one: one.token(sub=None),
    "a long subject": lambda one: one.token(sub="a" * 300),
    "an id that is a list": lambda one: one.token(jti=["1"]),
    "an expiry that is text": lambda one: one.token(exp=str(int(time.time()) + 60)),
    "a key id that UTF-8 cannot encode": lambda one: forged_header(one, kid="\ud800"),
    "a critical header that UTF-8 cannot encode": lambda one: forged_header(one, crit=["\ud800"]),
    "a subject with a line break": lambda one: one.token(sub="a\nb"),
    "a subject with a NUL byte": lambda one: one.token(sub="a\0"),
    "a subject that UTF-8 cannot encode": lambda one: one.token(sub="\ud800"),
    "alg none": unsigned,
    "alg none in capitals": lambda one: f"{encode({'alg': 'NONE'})}.{encode({'iss': one.url})}.",
    "HS256 with the public key": signed_with_the_public_key,
    "changed claims": changed,
    "a key id with a path": lambda one: one.token(headers={"kid": "../../../etc/passwd"}),
    "a key id that is a number": lambda one: forged_header(one, kid=1),
    "keys in the header": lambda one: one.token(
        key=rsa.generate_private_key(65537, 2048), headers={"jku": "http://127.0.0.1:1/jwks", "kid": "other"}
    ),
    "a critical header": lambda one: one.token(headers={"crit": ["x"], "x": 1}),
    "no key id": lambda one: f"{encode({'alg': 'RS256'})}.{one.token().split('.')[1]}.x",
    "deep nesting": lambda one: f"{encode({'alg': 'RS256'})}.{base64.urlsafe_b64encode(b'[' * 5000).decode()}.x",
    "a payload that is a list": lambda one: f"{encode({'alg': 'RS256'})}.{encode([1])}.x",
    "a payload that is no JSON": lambda one: f"{encode({'alg': 'RS256'})}.aGFsbG8.x",
    "infinite times": lambda one: one.token(exp=float("inf"), iat=float("inf"), nbf=float("nan")),
    "a time that is text": lambda one: one.token(exp="tomorrow"),
    "too long": lambda one: one.token(groups=["a" * 8000]),
    "no dots": lambda one: "token",
    "many dots": lambda one: "." * 100,
}  # fmt: skip


@mark.parametrize("forgery", FORGED)
def test_a_forged_token_is_refused(trusted, lock, forgery):
    error = lock(FORGED[forgery](trusted)).error(401, "invalid_token")
    assert "Traceback" not in error["detail"] and len(error["detail"]) < 500
    assert not GlobalTagChange.objects.filter(action="status").exists()


def test_strange_times_are_no_fault_of_the_service(trusted, lock):
    token = trusted.token(exp=10**400, iat=-(10**20))
    lock(token).ok()
    access.revoke_issued_token(actor="test", issuer="exp", claim="sub", value="alice")
    rules.forget()
    lock(token).error(401, "invalid_token")


def test_commands_know_the_issuers(trusted):
    with pytest.raises(CommandError, match=r"issuer must be one in CDB_ISSUERS_FILE: exp \(got other\)"):
        call_command("token", "revoke-issued", "--issuer", "other", "--jti", "x")
    with pytest.raises(CommandError, match="issuer must be"):
        call_command("grant", "claim", "x", "--issuer", "other", "--claim", "y", "--role", "manager")
    call_command("token", "revoke-issued", "--issuer", "exp", "--jti", "x")
    assert RevokedToken.objects.get().value == "x"


def test_a_token_is_refused_from_its_expiry_on_although_it_is_remembered(trusted, lock, settings, monkeypatch):
    monkeypatch.setattr(jwt_tokens._verified, "seconds", 600)
    token = trusted.token(exp=int(time.time()) - 57)
    lock(token).ok()
    deadline = time.monotonic() + 60
    while lock(token).status == 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    lock(token).error(401, "invalid_token")


def test_a_token_of_an_issuer_is_revoked_by_its_id_or_with_all_of_its_subject(trusted, lock):
    one, two = trusted.token(jti="1"), trusted.token(jti="2")
    lock(one).ok()
    access.revoke_issued_token(actor="test", issuer="exp", claim="jti", value="1")
    rules.forget()
    lock(one).error(401, "invalid_token")
    lock(two).ok()
    access.revoke_issued_token(actor="test", issuer="exp", claim="sub", value="alice")
    rules.forget()
    lock(two).error(401, "invalid_token")
    lock(trusted.token(iat=None)).error(401, "invalid_token")
    # The issuer's clock may be ahead by the leeway.
    lock(trusted.token(iat=int(time.time()) + 50)).error(401, "invalid_token")
    RevokedToken.objects.update(created=timezone.now() - timedelta(seconds=70))
    rules.forget()
    lock(trusted.token(iat=int(time.time()) - 75)).error(401, "invalid_token")
    lock(trusted.token()).ok()


def test_an_id_token_is_for_this_client_and_this_login(trusted, configure, tmp_path):
    (tmp_path / "secret").write_text("s" * 32)
    configure(
        f'[exp]\nissuer = "{trusted.url}"\naudience = "{AUDIENCE}"\nalgorithms = ["RS256"]\n'
        'client_id = "cdb"\nclient_secret_file = "secret"\n'
    )
    issuer = issuers.for_login()
    good = {"aud": ["cdb", "other"], "nonce": "n", "azp": "cdb"}
    assert jwt_tokens.verify_id_token(trusted.token(**good), issuer, "n")["sub"] == "alice"
    for bad in ({"azp": "other"}, {"aud": "other"}, {"nonce": "m"}, {"nonce": None}):
        with pytest.raises(jwt_tokens.InvalidTokenError):
            jwt_tokens.verify_id_token(trusted.token(**good | bad), issuer, "n")


def test_keys_are_rotated_while_the_service_runs(trusted, lock, monkeypatch):
    lock(trusted.token()).ok()
    trusted.private.clear()
    trusted.add_key("second")
    # Not asked again at once, so that forged key ids do not flood the issuer.
    lock(trusted.token("second")).error(401, "invalid_token")
    assert len(trusted.requests) == 2
    monkeypatch.setattr(keys, "RETRY_SECONDS", 0)
    lock(trusted.token("second")).ok()
    assert trusted.requests[2:] == ["/jwks"]


def test_new_keys_that_another_process_fetched_are_used_at_once(trusted, lock):
    lock(trusted.token()).ok()
    here = keys._sets.copy()
    trusted.private.clear()
    trusted.add_key("second")
    # The other process.
    keys.forget()
    keys._set_of(issuers.configured()[0]).tried = float("-inf")
    lock(trusted.token("second")).ok()
    # This one has asked within the last minute.
    keys._sets.clear()
    keys._sets.update(here)
    jwt_tokens.forget()
    asked = len(trusted.requests)
    lock(trusted.token("second")).ok()
    assert len(trusted.requests) == asked


def test_forged_key_ids_do_not_flood_the_issuer(trusted, lock, monkeypatch):
    monkeypatch.setattr(attempts, "LIMIT", 1000)
    lock(trusted.token()).ok()
    for number in range(50):
        lock(trusted.token(headers={"kid": f"forged {number}"})).error(401, "invalid_token")
    assert len(trusted.requests) == 2


def test_keys_are_used_while_the_issuer_is_away_even_after_a_restart(trusted, lock, monkeypatch):
    lock(trusted.token()).ok()
    trusted.answer = lambda path: (500, b"")
    keys.forget()
    jwt_tokens.forget()
    lock(trusted.token()).ok()
    # Two days later.
    monkeypatch.setattr(keys, "MAX_AGE_SECONDS", 0)
    jwt_tokens.forget()
    lock(trusted.token(jti="later")).error(401, "invalid_token")


def test_keys_of_before_are_not_used_for_an_issuer_with_a_file(trusted, lock, configure, tmp_path):
    lock(trusted.token()).ok()
    withdrawn = trusted.token(jti="withdrawn")
    trusted.private.clear()
    trusted.add_key("first")
    (tmp_path / "keys.json").write_text(json.dumps(trusted.jwks()))
    configure(
        f'[exp]\nissuer = "{trusted.url}"\naudience = "{AUDIENCE}"\nalgorithms = ["RS256"]\nkeys_file = "keys.json"\n'
    )
    lock(withdrawn).error(401, "invalid_token")
    lock(trusted.token()).ok()


def test_old_keys_are_refreshed_in_the_background(trusted, lock, monkeypatch):
    lock(trusted.token()).ok()
    monkeypatch.setattr(keys, "REFRESH_SECONDS", 0)
    monkeypatch.setattr(keys, "RETRY_SECONDS", 0)
    responded, was_in_time = threading.Event(), []

    def respond(path):
        was_in_time.append(responded.wait(30))
        return 200, trusted.document(path)

    trusted.answer = respond
    lock(trusted.token(jti="next")).ok()
    responded.set()
    keys._sets["exp"].fetch.join(30)
    # The request did not wait for the issuer.
    assert was_in_time == [True]


RESPONSES = {
    "garbage": (200, b"\x00garbage"),
    "an error": (500, b"no"),
    "no keys": (200, b'{"keys": []}'),
    "keys that are none": (200, b'{"keys": [{"kty": "RSA", "kid": "first"}]}'),
    "texts as keys": (200, b'{"keys": ["first"]}'),
    "10,000 keys": (200, json.dumps({"keys": [{"kty": "RSA", "kid": "first"}] * 10_000}).encode()),
    "a large document": (200, b'{"keys": "' + b"x" * 2_000_000 + b'"}'),
    "a list": (200, b"[]"),
    "deep nesting": (200, b"[" * 100_000),
}


@mark.parametrize("response", RESPONSES)
def test_a_strange_response_of_the_issuer_fails_no_other_request(trusted, lock, api, response):
    trusted.answer = lambda path: RESPONSES[response] if path == "/jwks" else (200, trusted.document(path))
    lock(trusted.token()).error(401, "invalid_token")
    api.get("globalTags").ok()


@mark.parametrize(
    "document", [{"issuer": "https://evil.example.org", "jwks_uri": "x"}, {}, [], {"jwks_uri": "file:///etc/passwd"}]
)
def test_a_discovery_document_of_another_issuer_is_refused(trusted, lock, document):
    document = document | {"issuer": trusted.url} if document == {"jwks_uri": "file:///etc/passwd"} else document
    trusted.answer = lambda path: (200, json.dumps(document).encode())
    lock(trusted.token()).error(401, "invalid_token")


def test_no_request_waits_long_for_an_issuer_that_hangs(trusted, lock):
    refused, was_in_time = threading.Event(), []

    def respond(path):
        was_in_time.append(refused.wait(60))
        return 500, b""

    trusted.answer = respond
    lock(trusted.token()).error(401, "invalid_token")
    # Another attempt would wait again.
    lock(trusted.token(jti="2")).error(401, "invalid_token")
    refused.set()
    deadline = time.monotonic() + 60
    while not was_in_time:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert was_in_time == [True]


def test_the_secret_of_a_site_that_comes_from_nopayloaddb(configure, lock, world, tmp_path):
    (tmp_path / "secret").write_text(SECRET + "\n")
    configure('[old]\nalgorithms = ["HS256"]\nsecret_file = "secret"\n')
    grant(kind="claim", issuer="old", claim="b2cdb:createiov", subject=".*", role="manager", tags="{pattern}")
    claims = {"sub": "bob", "exp": time.time() + 60}

    def token(secret=SECRET, **more):
        return jwt.encode(claims | more, secret, "HS256")

    lock(token(**{"b2cdb:createiov": ["run2.*", "x"]})).ok()
    assert GlobalTagChange.objects.latest("id").actor == "old:bob"
    lock(token(**{"b2cdb:createiov": ["run2"]})).error(403, "not_permitted")
    lock(token(**{"b2cdb:createiov": [")|(.*"]})).error(403, "not_permitted")
    lock(token(**{"b2cdb:createiov": ["", None, 7]})).error(403, "not_permitted")
    lock(token("another secret " * 3, **{"b2cdb:createiov": [".*"]})).error(401, "invalid_token")


@mark.parametrize(
    ("claim", "can_insert", "can_freeze"),
    [
        ("b2cdb:admin", True, True),
        ("b2cdb:createiov", True, False),
        ("b2cdb:createpayload", True, False),
        ("x", False, False),
    ],
)
def test_the_rules_for_tokens_of_belle(trusted, api, world, claim, can_insert, can_freeze):
    # As docs/access.md has them.
    for name, role in (("admin", "publisher"), ("createiov", "contributor"), ("createpayload", "contributor")):
        grant(kind="claim", issuer="exp", claim=f"b2cdb:{name}", subject=".*", role=role, tags="{pattern}")
    headers = {"Authorization": f"Bearer {trusted.token(groups=None, **{claim: ['run2[0-9]', 'test_.*']})}"}
    row = {"payload_list": world["gain"].name, "payload_url": "f", "major_iov": 900, "minor_iov": 0, "checksum": "c"}
    assert api.post("bulk_piov", [row], **headers).status == (200 if can_insert else 403)
    assert api.put("gt_change_status/run24/frozen", **headers).status == (200 if can_freeze else 403)
    api.post("gt", {"name": "production", "status": "unlocked"}, **headers).error(403, "not_permitted")


def test_the_value_of_a_claim_is_text_unless_a_rule_says_otherwise(trusted, lock, api):
    grant(kind="claim", issuer="exp", claim="sub", subject=".*", role="manager", tags="{value}_.*")
    token = trusted.token(sub=".*", groups=None)
    lock(token).error(403, "not_permitted")
    alice = {"Authorization": f"Bearer {trusted.token(groups=None)}"}
    api.post("gt", {"name": "alice_1", "status": "unlocked"}, **alice).ok()


def test_capabilities_alone_judge_a_token_that_has_some(trusted, lock):
    lock(trusted.token(scope="openid wlcg wlcg.groups:/exp/calib")).ok()
    lock(trusted.token(scope="openid storage.read:/")).error(403, "not_permitted")
    grant(kind="claim", issuer="exp", claim="scope", subject="conditions.manage:/", role="manager")
    lock(trusted.token(scope="conditions.manage:/ openid")).ok()


@mark.parametrize(
    ("text", "message"),
    [
        ("[", "must be a TOML file"),
        ("a = 1", "must consist of tables"),
        ('[a]\nissuer="https://x"', "issuer, audience and algorithms are required"),
        ('[a]\nissuer="http://x"\naudience="y"\nalgorithms=["RS256"]', "must begin with https://"),
        (
            '[a]\nissuer="x"\naudience="y"\nalgorithms=["RS256"]\nkeys_url="http://x/"',
            "keys_url must begin with https://",
        ),
        ('[a]\nissuer="https://x"\naudience="y"\nalgorithms=["none"]', "algorithms must be of"),
        ('[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256", "HS256"]\nsecret_file="s"', "HS256 alone"),
        ('[a]\nalgorithms=["HS256"]', "secret_file is required"),
        ('[a]\nalgorithms=["HS256"]\nsecret_file="missing"', "can't be read"),
        ('[a]\nalgorithms=["HS256"]\nsecret_file="short"', "at least 32 bytes"),
        ('[a]\nalgorithms=["HS256"]\nsecret_file="key"', "CDB_SECRET_KEY"),
        ('[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256"]\nleeway_seconds=9999', "leeway_seconds must be"),
        ('[a]\nissuer="https://x"\naudience=3\nalgorithms=["RS256"]', "audience must be a text"),
        ('[a]\nissur="https://x"', "issur is unknown"),
        ('[a]\nissuer="https://[::1"\naudience="y"\nalgorithms=["RS256"]', "issuer must begin with https://"),
        ('[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256"]\nclient_id="c"', "are required together"),
        (
            '[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256"]\nclient_id="c"\nclient_secret_file="missing"',
            "client_secret_file can't be read",
        ),
        (
            '[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256"]\n'
            '[b]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256"]',
            "each issuer",
        ),
    ],
)
def test_a_file_of_issuers_that_is_not_valid_is_refused(tmp_path, settings, text, message):
    (tmp_path / "short").write_text("secret")
    (tmp_path / "key").write_text(settings.SECRET_KEY)
    (tmp_path / "issuers.toml").write_text(text)
    with pytest.raises(ImproperlyConfigured, match=message.replace("(", r"\(")) as refusal:
        issuers.load(str(tmp_path / "issuers.toml"))
    assert "\n" not in str(refusal.value)
