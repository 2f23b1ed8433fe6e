"""Comparison of lookups with those of a running old service."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from cdb_rest.adopt.verifying import Verification, verify_against
from cdb_rest.models import PayloadIOV
from tests.adopt.old_database import OldDatabase
from tests.adopt.test_adoption import adopted, decisions_of
from tests.builders import make_statuses

pytestmark = pytest.mark.django_db


@pytest.fixture
def database(scratch):
    make_statuses()
    return OldDatabase(scratch).create()


@pytest.fixture
def old_service(database):
    class Lookup(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = {name: value for name, [value] in parse_qs(urlsplit(self.path).query).items()}
            found = database.lookup(asked["gtName"], int(asked["majorIOV"]), int(asked["minorIOV"]))
            rows = database.execute(
                "SELECT type.name, iov.payload_url, iov.checksum, iov.size, iov.major_iov, iov.minor_iov, iov.major_iov_end, "
                "iov.minor_iov_end FROM {PayloadIOV} AS iov JOIN {PayloadList} AS list ON list.id = iov.payload_list_id "
                "JOIN {PayloadType} AS type ON type.id = list.payload_type_id WHERE iov.id = ANY(%s)",
                list(found.values()),
            )
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(rows).encode())

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Lookup) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def compared(copy, url):
    result = Verification()
    verify_against(copy, url, 40, result, lambda count: None)
    assert result.asked == 40
    return result


def test_lookups_are_equal_explained_by_a_decision_or_told(database, old_service):
    payload_list = database.payload_list("Pedestals", database.tag("online"))
    for start in (0, 10, 20):
        database.iov(payload_list, (0, start), (0, start + 10))
    with_empty = database.payload_list("Gains", database.tag("physics"))
    for start in (5, 6):
        database.iov(with_empty, (0, start), (0, 6))
    copy = adopted(database, decisions_of({"empty": "detach"}))
    found = compared(copy, old_service)
    assert found.equal and found.explained and found.equal + found.explained == 40
    assert found.reasons.keys() == {"empty"}
    PayloadIOV.objects.filter(payload_list__payload_type__name="Pedestals").update(payload_url="other.root")
    lines = compared(copy, old_service).lines
    assert lines and all(line.startswith("online, Pedestals at (0, ") and "-> other.root" in line for line in lines)
