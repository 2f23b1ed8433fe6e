"""Fixtures of the tests of the web pages."""

import re

import pytest
from django.core.cache import cache

from cdb_web.page import PAGE_POLICY
from tests.api.conftest import tag
from tests.api.helpers import grant
from tests.conftest import ServiceClient
from tests.web.forms import Forms

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


@pytest.fixture
def person(settings, django_user_model):
    """Logs in a person, with a role if it is given, and returns the person's browser; writes are closed."""
    settings.CDB_OPEN_WRITES = False

    def log_in(name="ann", role=None, **rule):
        forms = Forms()
        if role:
            grant(kind="user", subject=name, role=role, **rule)
        forms.client.force_login(django_user_model.objects.create_user(name))
        return forms

    return log_in


@pytest.fixture
def forms():
    return Forms()
