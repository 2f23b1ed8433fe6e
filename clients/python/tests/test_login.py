"""Login: the device flow of an identity provider, and tokens that are stored."""

import json
import time
from urllib.parse import parse_qsl

import pytest

from cdb_client import config, login, tokens
from cdb_client.errors import InputError, NotAllowedError, UnavailableError
from cdb_client.transport import Transport
from tests.api.identity_provider import AUDIENCE, Provider


class DeviceProvider(Provider):
    """An identity provider with a device flow, whose responses to polls are `answers`; then it gives an access token."""

    def __init__(self, **endpoints):
        super().__init__()
        self.forms, self.answers = [], []
        paths = {"token_endpoint": "token", "device_authorization_endpoint": "device"} | endpoints
        configuration = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        configuration |= {name: f"{self.url}/{path}" for name, path in paths.items() if path}
        served = json.dumps(configuration).encode()
        self.answer = lambda path: (200, self.document(path) if path == "/jwks" else served)
        codes = {"device_code": "secret", "user_code": "WDJB-MJHT", "verification_uri": f"{self.url}/page"}
        self.device = 200, codes | {"expires_in": 600, "interval": 0.05}
        provider = self

        class Handler(self.server.RequestHandlerClass):
            def do_POST(self):  # noqa: N802
                form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                provider.forms.append(form)
                status, body = provider.device if self.path == "/device" else provider.poll()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        self.server.RequestHandlerClass = Handler

    def poll(self):
        if self.answers:
            return 400, {"error": self.answers.pop(0)}
        return 200, {"access_token": self.token(), "token_type": "Bearer"}


@pytest.fixture
def provider():
    made = DeviceProvider()
    yield made
    made.server.shutdown()


def configured(server, provider, tmp_path):
    """The configuration of a server that has an issuer in config.toml."""
    (tmp_path / "config").mkdir(exist_ok=True)
    login = f'issuer = "{provider.url}"\nclient_id = "cdb-command"\nscope = "openid groups"\naudience = "{AUDIENCE}"'
    (tmp_path / "config" / "config.toml").write_text(f'[servers.here]\nurl = "{server}"\n{login}\n')
    return config.read_config("here")


def test_a_login_with_the_device_flow(fresh, provider, tmp_path, monkeypatch):
    monkeypatch.setattr(login, "SLOWER_SECONDS", 0.05)
    issuers = tmp_path / "issuers.toml"
    keys = f'audience = "{AUDIENCE}"\nalgorithms = ["RS256"]\nkeys_url = "{provider.url}/jwks"'
    issuers.write_text(f'[experiment]\nissuer = "{provider.url}"\n{keys}\n')
    service = fresh(CDB_OPEN_WRITES="false", CDB_ISSUERS_FILE=str(issuers)).start()
    server = f"http://127.0.0.1:{service.port}"
    claim = ("claim", "/exp/calib", "--issuer", "experiment", "--claim", "groups", "--role", "manager")
    assert service.manage("grant", *claim).returncode == 0
    asked = configured(server, provider, tmp_path)
    provider.answers = ["authorization_pending", "slow_down", "authorization_pending"]
    shown = []
    token = login.device_flow(asked, lambda *values: shown.append(values))
    assert shown == [(f"{provider.url}/page", "WDJB-MJHT", None)]
    assert provider.forms[0] == {"client_id": "cdb-command", "scope": "openid groups", "audience": AUDIENCE}
    assert provider.forms[-1]["device_code"] == "secret" and len(provider.forms) == 5
    assert login.store(asked, token)["name"] == "experiment:alice"
    assert (tmp_path / "config" / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert Transport(asked).get("whoami", identifies=True).json()["name"] == "experiment:alice"
    # One that has expired, one of another provider, and none at all.
    for wrong in (provider.token(exp=int(time.time()) - 3600), Provider().token(), "nonsense"):
        with pytest.raises(NotAllowedError):
            login.store(asked, wrong)
    assert tokens.stored_tokens() == {server: token}


@pytest.mark.parametrize("answer", ["access_denied", "expired_token"])
def test_a_login_that_fails(server, provider, tmp_path, answer):
    provider.answers = [answer]
    with pytest.raises(NotAllowedError, match=answer):
        login.device_flow(configured(server, provider, tmp_path), lambda *values: None)


def test_what_a_login_needs(server, tmp_path):
    with pytest.raises(InputError, match="client_id"):
        login.device_flow(config.read_config(server), lambda *values: None)
    without = DeviceProvider(device_authorization_endpoint=None)
    with pytest.raises(InputError, match="device flow"):
        login.device_flow(configured(server, without, tmp_path), lambda *values: None)
    without.server.shutdown()
    without.server.server_close()
    with pytest.raises(UnavailableError, match="127"):
        login.device_flow(configured(server, without, tmp_path), lambda *values: None)
    with pytest.raises(NotAllowedError):
        login.store(config.read_config("http://conditions.example.org"), "cdb_token")
