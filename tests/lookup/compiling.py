"""Lookups from compiled lists, held against those of PostgreSQL."""

import contextlib
import os
import random
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest.mock import patch

from django.conf import settings
from django.db import connection
from django.test import override_settings
from prometheus_client import REGISTRY

from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.pack import paths, readable_packs
from cdb_rest.compiled.registry import registry
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.lookup.model import NO_VALIDATORS, LookupQuery
from cdb_rest.lookup.queries import look_up, look_up_here
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.moment import Mode, Moment

KINDS = ("none", "confirmed", "shared", "changed", "all")
# Every combination of only_valid, as_objects and with_window.
FORMS = list(product((False, True), repeat=3))


def kinds():
    """The numbers of lookups from compiled lists until now, by the part of the database."""
    return Counter(
        {kind: int(REGISTRY.get_sample_value("cdb_compiled_lookups_total", {"database": kind})) for kind in KINDS}
    )


def same_as_postgresql(tag, moment, mode=Mode.CONTINUOUS, as_of=None):
    """Assert that every form of a lookup has the same result as without compiled lists: state, body and window, or the error."""
    for only_valid, as_objects, with_window in FORMS:
        query = LookupQuery(tag, Moment(*moment), only_valid, as_objects, mode, as_of)
        expected = result_of(look_up_here, query, with_window)
        assert result_of(look_up, query, with_window) == expected, query


def result_of(function, query, with_window):
    try:
        found = function(query, NO_VALIDATORS, with_window=with_window)
        # The time of modification is None until it is reached, which may be between two lookups.
        return replace(found, state=replace(found.state, modified=None))
    except CdbError as error:
        return type(error), str(error)


@contextlib.contextmanager
def compiled_tags_in(path):
    """Lookups use the compiled lists in a directory. The test compiles them, and lets `registry.refresh` find them."""
    with override_settings(CDB_COMPILED_DIR=str(path)), patch.object(registry, "_is_enabled", True):
        registry.forget()
        try:
            yield
        finally:
            registry.forget()


def delete_compiled():
    """Delete all compiled lists, after a test has deleted the rows of tags: a frozen one would be used for good."""
    shutil.rmtree(Path(settings.CDB_COMPILED_DIR) / "packs", ignore_errors=True)
    registry.forget()


def compile_and_open(tag, revision=None):
    """Compile a tag or a revision, if it exists, and open the file."""
    with contextlib.suppress(CdbError):
        compile_tag(tag, revision, packs=readable_packs())
    registry.refresh()


def damage(chance):
    """Change, truncate, delete or swap one of the files."""
    files = paths()
    if not files:
        return
    # The kernel's clock of files has steps of some milliseconds.
    time.sleep(0.01)
    file, other = chance.choice(files), chance.choice(files)
    match chance.choice(["change", "truncate", "delete", "swap"]):
        case "change":
            content = bytearray(file.read_bytes())
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            with file.open("r+b") as opened:
                opened.write(content)
        case "truncate":
            os.truncate(file, chance.randrange(file.stat().st_size))
        case "delete":
            file.unlink()
        case "swap":
            shutil.copyfile(other, file.with_suffix(".copy"))
            file.with_suffix(".copy").rename(file)


@contextlib.contextmanager
def compiling_beside(race, grid, mode, seed):
    """Inside the block, one thread compiles tags of a race and their revisions and damages their files, and another one compares
    lookups with those of PostgreSQL, each time at one state of the database."""
    over, files = threading.Event(), threading.Lock()

    def compile_and_damage():
        chance = random.Random(f"{seed} compile")
        try:
            while not over.wait(chance.random() / 20):
                # A file that is truncated while it is read ends the process; and a lookup takes the compiled lists before its
                # snapshot.
                with files:
                    if chance.random() < 0.2:
                        damage(chance)
                    registry.refresh()
                compile_and_open(chance.choice(race.tags), chance.choice([None, None, chance.randint(1, 60)]))
        finally:
            connection.close()

    def compare():
        chance = random.Random(f"{seed} compare")
        try:
            while not over.is_set():
                as_of = chance.choice([None, AsOf(revision=chance.randint(1, 60))])
                with files, snapshot():
                    same_as_postgresql(chance.choice(race.tags), chance.choice(grid), mode, as_of)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        threads = [pool.submit(compile_and_damage), pool.submit(compare)]
        try:
            yield
        finally:
            over.set()
        for thread in threads:
            thread.result()


def insert(api, kind, start, url="file", tag="tag"):
    row = {"global_tag": tag, "payload_type": kind, "payload_url": f"{url}{start}", "checksum": "c"}
    api.post("payload-iovs/insert", row | {"since": [start, 0], "until": "next"}).ok()


def recompile(revision=None, tag="tag"):
    """Compile what is missing of a tag, and look it up, so that this process knows its lists. Returns the number of lists."""
    _, lists, _, _ = compile_tag(tag, revision, packs=readable_packs())
    registry.refresh()
    for _ in range(2):
        look_up(LookupQuery(tag, Moment(0, 0), as_of=revision and AsOf(revision=revision)))
    return lists


def check(*expected, as_of=None):
    """All lookups are those of PostgreSQL, and were answered in the expected ways."""
    before = kinds()
    for major in range(6):
        same_as_postgresql("tag", (major, 0), as_of=as_of)
    assert set(kinds() - before) == set(expected)
