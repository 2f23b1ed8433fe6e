"""Files of compiled lists that are damaged, exchanged, deleted or of another database: they never answer wrongly."""

from io import StringIO

import pytest
from django.core.management import call_command

from cdb_rest.compiled.registry import registry
from tests.lookup.compiling import check, kinds, recompile, same_as_postgresql

pytestmark = pytest.mark.django_db(transaction=True)


def is_used():
    """Whether lookups, which are those of PostgreSQL, were answered from compiled lists."""
    before = kinds()
    same_as_postgresql("tag", (2, 0))
    return bool(kinds() - before)


def test_files_of_the_database_before_a_restoration_are_not_used(api, tag):
    for status in ("locked", "frozen"):
        api.put(f"gt_change_status/tag/{status}").ok()
    recompile()
    check("none")
    call_command("record_restoration", stdout=StringIO())
    registry.confirm()
    assert not is_used()
    assert recompile() == 3
    check("none")
