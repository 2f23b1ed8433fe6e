"""Fixtures of services for the load tests."""

import tempfile
from pathlib import Path

import pytest

from tests.e2e.service import Service


@pytest.fixture(scope="session")
def load_service():
    """`manage.py run` with its example tag, for all tests of users."""
    # The account of PostgreSQL cannot read the directories of pytest.
    directory = tempfile.TemporaryDirectory(prefix="cdb-load-", ignore_cleanup_errors=True)
    with directory as path, Service(Path(path) / "data").running() as service:
        yield service
