"""Fixtures of the tests of commands."""

import pytest

from cdb_rest.models import PayloadType


@pytest.fixture
def payload_types():
    for name in ("Gain", "Noise"):
        PayloadType.objects.create(name=name)
