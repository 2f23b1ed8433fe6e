"""Fixtures of the tests of the API."""

import pytest

from cdb_rest.access import discovery, issuers, jwt_tokens, keys, rules
from cdb_rest.models import ApiToken, GlobalTag, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType
from cdb_rest.writes import access, global_tags
from tests.api.helpers import MINE, OTHER, grant, insert, rename
from tests.api.identity_provider import AUDIENCE, Provider


@pytest.fixture
def empty_tag(build):
    """An empty unlocked tag, and the payload type Gain."""
    PayloadType.objects.create(name="Gain")
    return build.tag()


@pytest.fixture
def world(build):
    """A tag with two lists, one of them with two IOVs; a detached list and a detached IOV."""
    tag = build.tag("run24")
    gain = build.list(tag, "Gain")
    build.list(tag, "Noise")
    build.iov(gain, (0, 0), (10, 0), url="early", extra="3")
    build.iov(gain, (10, 0), url="late")
    detached = build.list(None, "Gain")
    build.iov(None, (5, 5), url="loose")
    return {"tag": tag, "gain": gain, "detached": detached}


@pytest.fixture
def payload_list(build):
    """A list in a tag, both empty."""
    return build.list(build.tag())


@pytest.fixture
def tag(api, build):
    """A tag with an IOV, made by requests, so that its history is in order."""
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    api.post("pt", {"name": "Gain"}).ok()
    insert(api, "first", [1, 0])
    return GlobalTag.objects.get()


@pytest.fixture
def closed(settings):
    """Writes need a role."""
    settings.CDB_OPEN_WRITES = False


@pytest.fixture
def login():
    """Creates a token with a role, and returns the headers of a request with it."""

    def create(role, tags=".*", types=".*", lifetime=None, name=None):
        name = name or f"robot {ApiToken.objects.count()}"
        token, _ = access.create_token(
            actor="test", name=name, role=str(role), tags=tags, types=types, lifetime=lifetime
        )
        rules.forget()
        return {"Authorization": f"Bearer {token}"}

    return create


@pytest.fixture
def ids(build):
    """Two tags with an IOV, a further tag, a locked one, and detached lists. Returns the ids of the IOVs."""
    ids = {"detached": build.iov(None, (7, 0), (8, 0)).id}
    for name in (MINE, OTHER, "mine too"):
        tag = build.tag(name)
        ids[name] = build.iov(rename(build.list(tag, "Gain"), f"Gain {name}"), (1, 0), (2, 0), url=name).id
        rename(build.list(tag, "Noise"), f"Noise {name}")
        rename(build.list(build.tag(f"{name} locked", "locked"), "Gain"), f"Gain {name} locked")
    for name in (MINE, OTHER):
        # So that there is a revision to revert to.
        for status in ("locked", "unlocked"):
            global_tags.change_status(name=name, status=status)
    build.tag("source")
    rename(build.list(None, "Gain"), "Gain detached")
    rename(build.list(None, "New"), "New detached")
    PayloadType.objects.create(name="Unused")
    for model in (PayloadList, PayloadIOV):
        model.objects.update(left_tag=MINE)
    GlobalTagStatus.objects.create(name="unused")
    return ids


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


@pytest.fixture
def lock(api):
    """Locks a tag with a token."""
    return lambda token: api.put("gt_change_status/run24/locked", Authorization=f"Bearer {token}")
