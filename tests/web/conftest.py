"""Fixtures of the tests of the web pages."""

from tests.api.conftest import tag

__all__ = ["tag"]
