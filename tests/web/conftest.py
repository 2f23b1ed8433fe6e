"""Fixtures of the tests of the web pages."""

import re

import pytest
from django.core.cache import cache

from cdb_web.page import PAGE_POLICY
from tests.api.conftest import tag
from tests.conftest import ServiceClient

__all__ = ["tag"]


@pytest.fixture(autouse=True)
def _empty_cache():
    """Tests begin with the same ids and transactions, which a database never does."""
    cache.clear()


class Browser:
    """A client that accepts HTML."""

    def __init__(self):
        self._client = ServiceClient(headers={"Accept": "text/html,*/*;q=0.8"})

    def get(self, path, status=200, **headers):
        """The text of a page with that status."""
        response = self._client.get(path, headers=headers)
        assert response.status_code == status, (path, response.status_code, response.content[:2000])
        assert response["Content-Security-Policy"] == PAGE_POLICY
        assert response["Cache-Control"] in ("private, no-cache", "no-store")
        text = response.content.decode()
        # The policy forbids all of these.
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|javascript:", text), text
        return text


@pytest.fixture
def browser():
    return Browser()
