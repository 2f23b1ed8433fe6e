"""The templates of deploy/: every placeholder is explained and filled in."""

import re

import pytest

from cdb.serving import nginx, pgbouncer, postgresql
from cdb.serving.templates import COMMENT, DEPLOY, PLACEHOLDER

TEMPLATES = ["nginx.conf", "pgbouncer.ini", "postgresql.conf"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_placeholder_is_explained_at_the_top(name):
    lines = (DEPLOY / name).read_text().splitlines()
    used = {found for line in lines if not COMMENT.match(line) for found in PLACEHOLDER.findall(line)}
    explained = {found for line in lines if COMMENT.match(line) for found in PLACEHOLDER.findall(line)}
    assert used and used == explained


def test_every_placeholder_is_filled_in():
    for text in (nginx.configuration(), pgbouncer.configuration()):
        assert not any(PLACEHOLDER.search(line) for line in text.splitlines() if not COMMENT.match(line))


@pytest.mark.parametrize("name", ["SHARED_BUFFERS", "EFFECTIVE_CACHE_SIZE", "WORK_MEM", "MAINTENANCE_WORK_MEM"])
def test_the_table_of_sizes_is_what_is_computed(name):
    text = (DEPLOY / "postgresql.conf").read_text()
    gigabytes = [int(size) for size in re.search(r"#   memory +(.*) rule", text)[1].replace("GB", "").split()]
    row = re.search(rf"@{name}@ +((?:\d+MB +)+)", text)[1].split()
    assert row == [postgresql.sizes(size * 1024)[name] for size in gigabytes]
