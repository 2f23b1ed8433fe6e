"""Flags in query strings: one rule for all of them."""

import pytest

from cdb_rest.models import PayloadIOV

pytestmark = pytest.mark.django_db

ON, OFF, WRONG = ["", "=", "=1", "=true"], ["=0", "=false"], ["=2", "=yes", "=True", "=on", "=%201", "=00"]
LOOKUP = "payloadiovs/?gtName=tag&majorIOV=5&minorIOV=0"


@pytest.fixture
def tag(build):
    tag = build.tag()
    # Over at the moment of the lookup.
    build.iov(build.list(tag), (1, 0), (2, 0))
    return tag


def effect(api, flag, value):
    """Whether the flag is on, by what it does."""
    if flag == "dry_run":
        row = {
            "global_tag": "tag",
            "payload_type": "Gain",
            "payload_url": "x",
            "checksum": "",
            "since": [7, 0],
            "until": "open",
        }
        before = PayloadIOV.objects.count()
        api.post(f"payload-iovs/insert?dry_run{value}", row).ok()
        return PayloadIOV.objects.count() == before
    answer = api.get(f"{LOOKUP}&{flag}{value}")
    rows = answer.ok()
    return {
        "strict": not rows,
        "window": "CDB-Valid-Since" in answer.headers,
        "snap": "CDB-Canonical-Moment" in answer.headers,
    }[flag]


@pytest.mark.parametrize("flag", ["strict", "window", "snap", "dry_run"])
def test_every_flag_is_switched_alike(api, tag, flag):
    assert all(effect(api, flag, value) for value in ON)
    assert not any(effect(api, flag, value) for value in OFF)
    for value in WRONG:
        answer = (
            api.post("payload-iovs/insert?dry_run" + value, [])
            if flag == "dry_run"
            else api.get(f"{LOOKUP}&{flag}{value}")
        )
        assert flag in answer.error(400, "invalid_input")["detail"]
