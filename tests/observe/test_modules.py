"""The number of this project's modules through which a request runs, which a reader must open to follow it."""

import json
import sys

import pytest

from cdb.env import ROOT
from tests.observe.conftest import LOOKUP, PREFIX

pytestmark = pytest.mark.django_db
PACKAGES = tuple(f"{ROOT}/{name}/" for name in ("cdb", "cdb_rest", "cdb_web"))


def modules_of(request):
    """The files of this project whose functions are called by `request`."""
    found = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGES):
            found.add(frame.f_code.co_filename.removeprefix(f"{ROOT}/"))

    sys.setprofile(note)
    try:
        request()
    finally:
        sys.setprofile(None)
    return sorted(found)


def test_a_lookup_and_an_insert_run_through_few_modules(service, build, settings):
    settings.CDB_OPEN_WRITES = True
    build.list(build.tag())

    def look_up():
        assert service("GET", LOOKUP)[0] == 200

    def insert(start):
        row = {"global_tag": "tag", "payload_type": "Gain", "payload_url": f"{start}", "checksum": "a"}
        row |= {"since": [start, 0], "until": "next"}
        status, _, body = service("POST", f"{PREFIX}payload-iovs/insert", json.dumps(row).encode())
        assert status == 200, body

    # The first one of each kind also loads what is kept for the others.
    look_up()
    insert(1)
    assert len(modules_of(look_up)) <= 12, modules_of(look_up)
    assert len(modules_of(lambda: insert(2))) <= 28, modules_of(lambda: insert(3))
