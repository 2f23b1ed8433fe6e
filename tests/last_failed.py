"""A pytest plugin that lets `--last-failed` find tests of groups.

xdist appends the group of a test to its id. `--last-failed` compares ids before and after that, so both have to be stored.
It is loaded with ``-p tests.last_failed``.
"""

import re

import pytest

GROUP = re.compile(r"@[^\]@]+$")


# After pytest has stored the ids.
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    # Without pytest's own plugin there is no cache.
    cache = getattr(session.config, "cache", None)
    # Only the controller of xdist stores them.
    if cache and not hasattr(session.config, "workerinput"):
        failed = cache.get("cache/lastfailed", {})
        cache.set("cache/lastfailed", failed | {GROUP.sub("", nodeid): True for nodeid in failed})
