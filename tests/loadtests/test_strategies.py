"""What the bench makes of a service that lists its strategies, and of one that does not."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from loadtests.bench.parts.strategies import KNOWN, OWN, json_in, routes, verdicts_table
from loadtests.client import Client, lookups
from loadtests.reporting.result import Result


@contextlib.contextmanager
def served(answers):
    """A service with these answers by route; any other is refused as the real one does it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            route = self.path.removeprefix("/api/cdb_rest/").split("?")[0]
            known = route in answers
            body = json.dumps(answers[route] if known else {"detail": "…", "code": "route_not_found"}).encode()
            timing = 'Server-Timing: db;dur=1.5;desc="1 query", total;dur=2.0\r\n'
            head = f"HTTP/1.1 {200 if known else 404} X\r\n{timing}Content-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield SimpleNamespace(port=server.server_port)
        finally:
            server.shutdown()
            thread.join()


def test_listed_strategies_are_measured_and_missing_ones_noted():
    listed = [{"name": "sql_lateral", "meaning": "…"}, {"name": "sql_group", "meaning": "…"}]
    result = Result("strategies", "Strategies")
    with served({"payloadiovs_strategies/": listed, "payloadiovs_sql_lateral/": []}) as service:
        assert routes(service, result) == {OWN: "payloadiovs/", "sql_lateral": "payloadiovs_sql_lateral/"}
    assert result.notes == ["Not measured, because the service does not have them: sql_group."]


def test_without_a_list_the_known_ones_are_tried():
    result = Result("strategies", "Strategies")
    with served({"payloadiovs_orm_max/": []}) as service:
        assert list(routes(service, result)) == [OWN, "orm_max"]
    assert len(result.notes) == 2
    assert all(name in result.notes[1] for name in KNOWN if name != "orm_max")


def test_calls_in_a_row_are_bounded_by_number_and_time_but_three_at_least():
    with served({"payloadiovs/": [[1], [2]]}) as service, Client(service.port) as client:
        assert len(lookups(client, "payloadiovs/?gtName=x", "random", calls=5, seconds=60)) == 5
        answers = lookups(client, "payloadiovs/?gtName=x", "random", calls=5, seconds=0)
        assert [(answer.rows, answer.database) for answer in answers] == [(2, 1.5)] * 3
        with pytest.raises(ValueError, match="status 404"):
            _ = client.call("GET", "nothing").rows


def test_verdicts_of_any_shape():
    rows = [{"strategy": "sql_lateral", "other": 5, "rows_read": 200, "plans": [{"Node Type": "Limit"}]}]
    for document in (rows, {"global_tag": "tiny", "verdicts": rows}):
        table = verdicts_table(document)
        assert table.columns == ("strategy", "rows_read")
        assert table.rows == [("sql_lateral", 200)]
    assert verdicts_table([{"other": 5, "plan": {}}]).columns == ("other",)
    with pytest.raises(ValueError, match="no list"):
        verdicts_table({"detail": "none"})


def test_json_is_found_after_other_lines():
    assert json_in('a warning\n[\n  {"a": 1}\n]\n') == [{"a": 1}]
    with pytest.raises(ValueError, match="Expecting value"):
        json_in("no document")
