"""Files of compiled lists that are damaged, exchanged, deleted or of another database: they never answer wrongly."""

import os
import shutil
from io import StringIO

import pytest
from django.core.management import call_command

from cdb_rest.compiled.pack import paths
from cdb_rest.compiled.registry import registry
from tests.lookup.compiling import check, kinds, recompile, same_as_postgresql

pytestmark = pytest.mark.django_db(transaction=True)


def flip(path, place=0.5):
    """Change one byte."""
    text = bytearray(path.read_bytes())
    text[int(place * (len(text) - 1))] ^= 1
    path.write_bytes(text)


def swap(path):
    """Another file of the same size instead."""
    other = path.with_suffix(".other")
    shutil.copy(path, other)
    flip(other)
    other.replace(path)


DAMAGES = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "without end": lambda path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "first byte": lambda path: flip(path, 0),
    "flipped": flip,
    "in the header": lambda path: flip(path, 0.98),
    "last byte": lambda path: flip(path, 1),
    "swapped": swap,
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_damaged_files_never_answer(tag, damage, is_open):
    assert is_used()
    [path] = paths()
    if not is_open:
        registry.forget()
    damage(path)
    if not is_open:
        registry.refresh()
    assert not is_used()
    registry.refresh()
    assert not paths()
    assert recompile() == 3
    assert is_used()


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
