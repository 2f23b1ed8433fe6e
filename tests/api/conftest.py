"""Fixtures of the tests of the API."""

import pytest

from cdb_rest.models import GlobalTag, PayloadType
from tests.api.cached import insert


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
