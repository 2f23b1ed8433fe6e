"""Tokens (JWT) of identity providers: forged, stale and foreign ones, and their claims."""

import base64
import json
import time
from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from pytest import mark, param

from cdb_rest.access import issuers, jwt_tokens, rules
from cdb_rest.models import GlobalTagChange, RevokedToken
from cdb_rest.writes import access
from tests.api.helpers import grant
from tests.api.identity_provider import AUDIENCE
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "the shared secret of a site that comes from nopayloaddb"


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
}


@mark.parametrize("forgery", FORGED)
def test_a_forged_token_is_refused(trusted, lock, forgery):
    error = lock(FORGED[forgery](trusted)).error(401, "invalid_token")
    assert "Traceback" not in error["detail"] and len(error["detail"]) < 500
    assert not GlobalTagChange.objects.filter(action="status").exists()


def test_a_token_is_refused_from_its_expiry_on_although_it_is_remembered(trusted, lock):
    token = trusted.token(exp=int(time.time()) - 57)
    lock(token).ok()
    eventually(lambda: lock(token).status, 401, 60)
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


def test_capabilities_alone_judge_a_token_that_has_some(trusted, lock):
    lock(trusted.token(scope="openid wlcg wlcg.groups:/exp/calib")).ok()
    lock(trusted.token(scope="openid storage.read:/")).error(403, "not_permitted")
    grant(kind="claim", issuer="exp", claim="scope", subject="conditions.manage:/", role="manager")
    lock(trusted.token(scope="conditions.manage:/ openid")).ok()


VALID = '[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256"]\n'


@mark.parametrize(
    ("text", "message"),
    [
        ("[", "must be a TOML file"),
        ("a = 1", "must consist of tables"),
        ('[a]\nissuer="https://x"', "issuer, audience and algorithms are required"),
        ('[a]\nissuer="http://x"\naudience="y"\nalgorithms=["RS256"]', "must begin with https://"),
        (VALID + 'keys_url="http://x/"', "keys_url must begin with https://"),
        ('[a]\nissuer="https://x"\naudience="y"\nalgorithms=["none"]', "algorithms must be of"),
        ('[a]\nissuer="https://x"\naudience="y"\nalgorithms=["RS256", "HS256"]\nsecret_file="s"', "HS256 alone"),
        ('[a]\nalgorithms=["HS256"]', "secret_file is required"),
        ('[a]\nalgorithms=["HS256"]\nsecret_file="missing"', "can't be read"),
        ('[a]\nalgorithms=["HS256"]\nsecret_file="short"', "at least 32 bytes"),
        ('[a]\nalgorithms=["HS256"]\nsecret_file="key"', "CDB_SECRET_KEY"),
        (VALID + "leeway_seconds=9999", "leeway_seconds must be"),
        ('[a]\nissuer="https://x"\naudience=3\nalgorithms=["RS256"]', "audience must be a text"),
        ('[a]\nissur="https://x"', "issur is unknown"),
        ('[token]\nissuer="https://x"', "must not have one of the names token, network"),
        ('[Network]\nissuer="https://x"', "must not have one of the names token, network"),
        ('["token:a"]\nissuer="https://x"', "a name must have only"),
        ('["a\\nb"]\nissuer="https://x"', "a name must have only"),
        ('[a]\nissuer="https://[::1"\naudience="y"\nalgorithms=["RS256"]', "issuer must begin with https://"),
        (VALID + 'client_id="c"', "are required together"),
        (VALID + 'client_id="c"\nclient_secret_file="missing"', "client_secret_file can't be read"),
        (VALID + VALID.replace("[a]", "[b]"), "each issuer"),
    ],
)
def test_a_file_of_issuers_that_is_not_valid_is_refused(tmp_path, settings, text, message):
    (tmp_path / "short").write_text("secret")
    (tmp_path / "key").write_text(settings.SECRET_KEY)
    (tmp_path / "issuers.toml").write_text(text)
    with pytest.raises(ImproperlyConfigured, match=message.replace("(", r"\(")) as refusal:
        issuers.load(str(tmp_path / "issuers.toml"))
    assert "\n" not in str(refusal.value)
