"""An OpenID Connect provider, made with Authlib: a program that is started with the port and the callback of its client.

    python -m tests.e2e.identity_provider PORT REDIRECT_URI

It has the users `alice`, a calibration expert, and `root`, an administrator, who log in by name with the password PASSWORD.
The client must authenticate and use PKCE.
"""

import logging
import sys
import time

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector, current_token
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from flask import Flask, jsonify, request
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "cdb", "the secret of the client"
PASSWORD = "correct horse battery staple"
GROUPS = {"alice": ["/experiment/calibration"], "root": ["/experiment/administrators"], "mallory": []}
FORM = """<!DOCTYPE html><title>Provider</title><form method="post">
<label>Name <input name="username"></label> <label>Password <input name="password" type="password"></label>
<button>Log in</button></form>"""

keys: list[RSAKey] = []
codes: dict[str, "Code"] = {}
tokens: dict[str, "Token"] = {}


class Client:
    """The only client: the service, which authenticates with its secret in the body."""

    client_id = CLIENT_ID

    def __init__(self, redirect_uri):
        self.redirect_uri = redirect_uri

    def get_client_id(self):
        return CLIENT_ID

    def get_default_redirect_uri(self):
        return self.redirect_uri

    def get_allowed_scope(self, scope):
        return scope

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, secret):
        return secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "client_secret_post"

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type == "authorization_code"


class Code:
    """An authorization code, which is used once."""

    auth_time = 0

    def __init__(self, code, user, payload):
        self.code, self.user = code, user
        self.redirect_uri, self.scope = payload.redirect_uri, payload.scope
        self.nonce = payload.data.get("nonce")
        self.code_challenge = payload.data.get("code_challenge")
        self.code_challenge_method = payload.data.get("code_challenge_method")

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope

    def get_nonce(self):
        return self.nonce

    def get_auth_time(self):
        return int(time.time())

    def get_acr(self):
        return None

    def get_amr(self):
        return None


class Token:
    """An access token for the user info."""

    def __init__(self, user, scope):
        self.user, self.scope = user, scope

    def get_scope(self):
        return self.scope

    def is_expired(self):
        return False

    def is_revoked(self):
        return False


def claims_of(user):
    return UserInfo(sub=f"id-of-{user}", preferred_username=user, name=user.title(), groups=GROUPS[user])


class CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post"]

    def save_authorization_code(self, code, request):
        codes[code] = Code(code, request.user, request.payload)

    def query_authorization_code(self, code, client):
        return codes.get(code)

    def delete_authorization_code(self, authorization_code):
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return authorization_code.user


class IDToken(OpenIDCode):
    def exists_nonce(self, nonce, request):
        return False

    def get_jwt_config(self, grant, client=None):
        return {"key": keys[0].as_dict(private=True), "alg": "RS256", "iss": issuer(), "exp": 3600, "kid": keys[0].kid}

    def generate_user_info(self, user, scope):
        # The groups are in the user info alone, as with some providers.
        return UserInfo({name: value for name, value in claims_of(user).items() if name != "groups"})


class Validator(BearerTokenValidator):
    def authenticate_token(self, token_string):
        return tokens.get(token_string)


def issuer():
    return request.host_url.rstrip("/")


def create(redirect_uri):
    """The Flask application of the provider."""
    keys.append(RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"}))
    app = Flask(__name__)
    client = Client(redirect_uri)
    server = AuthorizationServer(
        app,
        query_client=lambda client_id: client if client_id == CLIENT_ID else None,
        save_token=lambda token, request: tokens.update({token["access_token"]: Token(request.user, token["scope"])}),
    )
    server.register_grant(CodeGrant, [IDToken(require_nonce=True), CodeChallenge(required=True)])
    protect = ResourceProtector()
    protect.register_token_validator(Validator())

    @app.get("/.well-known/openid-configuration")
    def configuration():
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "me"}
        return jsonify(
            {name: f"{issuer()}/{path}" for name, path in paths.items()}
            | {"issuer": issuer(), "jwks_uri": f"{issuer()}/jwks"}
        )

    @app.get("/jwks")
    def jwks():
        return jsonify({"keys": [key.as_dict(private=False) for key in keys]})

    @app.route("/authorize", methods=["GET", "POST"])
    def authorize():
        if request.args.get("code_challenge_method") != "S256":
            return "a code challenge is required", 400
        if request.method == "GET":
            return FORM
        name = request.form["username"]
        is_known = name in GROUPS and request.form["password"] == PASSWORD
        grant = server.get_consent_grant(end_user=name if is_known else None)
        return server.create_authorization_response(grant_user=name if is_known else None, grant=grant)

    @app.post("/token")
    def token():
        return server.create_token_response()

    @app.get("/me")
    @protect("openid")
    def me():
        return jsonify(claims_of(current_token.user))

    return app


if __name__ == "__main__":
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    create(sys.argv[2]).run("127.0.0.1", int(sys.argv[1]), threaded=True)
