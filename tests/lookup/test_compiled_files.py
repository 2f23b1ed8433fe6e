"""Files of compiled tags that are damaged, exchanged, copied, deleted or not written: they never answer wrongly."""

import os
import shutil

import pytest

from cdb_rest.compiled import directory
from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.manifest import FILES, MANIFEST, UnusableError
from cdb_rest.compiled.registry import registry
from tests.lookup.compiling import check, insert, kinds, recompile, same_as_postgresql

pytestmark = pytest.mark.django_db(transaction=True)


def flip(path):
    """Change one byte in the middle."""
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)


def open_bracket(path):
    """Damage the space at the end of a numpy header, which is a Python literal."""
    content = bytearray(path.read_bytes())
    content[min(100, len(content) // 2)] = ord("(")
    path.write_bytes(content)


def swap(path):
    """The file of another compiled tag of the same size instead."""
    other = path.with_suffix(".other")
    shutil.copy(path, other)
    flip(other)
    other.replace(path)


DAMAGES = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "flipped": flip,
    "open bracket": open_bracket,
    "swapped": swap,
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
def test_damaged_files_never_answer(tag, damage, is_open):
    # An open compiled tag has read its manifest already.
    for name in FILES if is_open else (*FILES, MANIFEST):
        tag = recompile()
        assert is_used()
        if not is_open:
            registry.forget()
        damage(tag / name)
        if not is_open:
            registry.refresh()
        assert not is_used(), name
        assert not directory.is_sealed(tag)
        with pytest.raises((UnusableError, FileNotFoundError)):
            directory.verify(tag)


def is_used():
    """Whether a lookup, which is that of PostgreSQL, was answered with the compiled tag."""
    before = kinds()
    same_as_postgresql("tag", (2, 0))
    return bool(kinds() - before)


def test_files_of_another_tag(api, tag):
    """A directory with all files of another tag."""
    api.post("cloneGlobalTag/tag/other").ok()
    insert(api, "Gain", 2, url="other", tag="other")
    other = compile_tag("other")
    for name in FILES:
        shutil.copy(other / name, tag / name)
    registry.refresh()
    check()
    with pytest.raises(UnusableError):
        directory.verify(tag)
