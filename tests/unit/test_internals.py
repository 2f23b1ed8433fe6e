"""Names that libraries do not document, and that this project uses (docs/decisions/0013-internals-of-libraries.md).

A new version of a library may drop or change one of them. Then a test here names it, before a service behaves strangely.
"""

import inspect
import tomllib
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from django.http import HttpResponse
from django.utils.log import log_response
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker
from packaging.requirements import Requirement
from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess, values
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from cdb.worker.connection import Connection
from cdb.worker.request_reader import RequestReader
from cdb.worker.responding import RespondingWorker
from cdb.worker.worker import BufferingWorker
from cdb_rest.metrics.values import Number
from tests.unit.worker_sockets import connected

# What our classes add to those of gunicorn; all their other methods replace one of gunicorn's.
OWN_METHODS = {
    RespondingWorker: {"_is_crowded", "_has_few_connections", "_has_next_request", "_respond_with_error"},
    BufferingWorker: {
        "_read",
        "_on_read_timeout",
        "_submit",
        "_queue",
        "_check_wait_limit",
        "_refuse_now",
        "_refuse",
        "_start",
        "_schedule_finish",
        "_finish",
        "_on_send_timeout",
        "_close",
        "_discard",
        "_drop",
        "_has_large_responses",
    },
    Connection: {"address", "read_deadline"},
}


def parameters(function):
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ThreadWorker.accept, ["self", "listener"]),
        (ThreadWorker.enqueue_req, ["self", "conn"]),
        (ThreadWorker.finish_request, ["self", "conn", "fs"]),
        (ThreadWorker.handle, ["self", "conn"]),
        (ThreadWorker.handle_error, ["self", "req", "client", "addr", "exc"]),
        (ThreadWorker.handle_request, ["self", "req", "conn"]),
        (ThreadWorker.murder_pending, ["self"]),
        (ThreadWorker.run, ["self"]),
        (TConn.__init__, ["self", "cfg", "sock", "client", "server"]),
        (TConn.close, ["self", "graceful"]),
        (TConn.init, ["self"]),
        (SocketUnreader.chunk, ["self", "size_hint"]),
        (SocketUnreader.take_buffered, ["self"]),
        (SocketUnreader.unread, ["self", "data"]),
        (wsgi.create, ["req", "sock", "client", "server", "cfg", "response_class", "response_args"]),
        (wsgi.Response.start_response, ["self", "status", "headers", "exc_info"]),
        (wsgi.Response.write, ["self", "arg"]),
        (wsgi.Response.close, ["self"]),
        (wsgi.Response.force_close, ["self"]),
        (Request.force_close, ["self"]),
        (wsgi.Response.should_close, ["self"]),
        (multiprocess.mark_process_dead, ["pid", "path"]),
        (mmap_key, ["metric_name", "name", "labelnames", "labelvalues", "help_text"]),
        (MmapedDict.read_value, ["self", "key"]),
        (
            values.MutexValue.__init__,
            ["self", "typ", "metric_name", "name", "labelnames", "labelvalues", "help_text", "kwargs"],
        ),
    ],
    ids=lambda value: value.__qualname__ if callable(value) else "",
)
def test_a_function_takes_what_we_give_it(function, expected):
    assert parameters(function) == expected


@pytest.mark.parametrize("ours", OWN_METHODS, ids=lambda ours: ours.__name__)
def test_each_method_replaces_one_of_gunicorn_or_is_known_to_be_our_own(ours):
    defined = {name for name, value in vars(ours).items() if inspect.isfunction(value) or isinstance(value, property)}
    inherited = {name for base in ours.__mro__[1:] for name in vars(base)}
    assert defined - inherited == OWN_METHODS[ours]


def test_a_worker_has_what_ours_relies_on():
    worker = ThreadWorker(1, 1, [], None, 30, Config(), None)
    names = (
        "alive",
        "cfg",
        "keepalived_conns",
        "log",
        "max_keepalived",
        "max_requests",
        "method_queue",
        "nr",
        "nr_conns",
        "poller",
        "tpool",
    )
    assert [name for name in names if not hasattr(worker, name)] == []
    assert callable(worker.method_queue.defer)


def test_a_connection_and_its_parser_read_from_our_reader():
    with connected() as (reader, client):
        conn = Connection(Config(), reader.sock, ("127.0.0.1", 1), ("127.0.0.1", 2), reader)
        conn.init()
        assert isinstance(conn.parser, RequestParser) and conn.parser.unreader is reader
        client.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert reader.receive()
        request = next(conn.parser)
        assert (request.method, request.uri, request.should_close()) == ("GET", "/x", False)


def test_a_reader_has_the_buffer_of_gunicorn():
    with connected() as (reader, _client):
        assert isinstance(reader, RequestReader) and reader.buf.getbuffer().nbytes == 0


def test_a_response_sends_its_head_by_one_call_before_its_body():
    with connected() as (reader, client):
        conn = Connection(Config(), reader.sock, ("127.0.0.1", 1), ("127.0.0.1", 2), reader)
        conn.init()
        client.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert reader.receive()
        sent = []
        response, _ = wsgi.create(next(conn.parser), reader.sock, conn.client, conn.server, conn.cfg)
        response.sock = SimpleNamespace(sendall=sent.append)
        response.start_response("200 OK", [("Content-Length", "4")])
        response.write(b"body")
        response.close()
        assert len(sent) == 2 and sent[0].endswith(b"\r\n\r\n") and sent[1] == b"body"


def test_refusals_are_parse_errors():
    assert issubclass(LimitRequestLine, ParseException) and issubclass(LimitRequestHeaders, ParseException)


def test_the_numbers_behind_metrics_are_where_we_look_for_them(monkeypatch):
    monkeypatch.setattr(values, "ValueClass", Number)
    registry = CollectorRegistry()
    counter = Counter("counted", "Text.", registry=registry)
    histogram = Histogram("timed", "Text.", registry=registry, buckets=(1, 2))
    assert isinstance(counter._value, Number) and isinstance(histogram._sum, Number)
    assert list(histogram._upper_bounds) == [1, 2, float("inf")]
    assert [type(bucket) for bucket in histogram._buckets] == [Number] * 3


def test_a_file_of_numbers_is_a_map_of_positions_into_memory(tmp_path):
    entries = MmapedDict(str(tmp_path / "counter_1.db"))
    entries.write_value("key", 7.0, 0.0)
    assert memoryview(entries._m).cast("d")[entries._positions["key"] // 8] == 7.0


def test_django_asks_a_response_whether_it_was_logged(caplog):
    response = HttpResponse(status=500)
    response._has_been_logged = True
    log_response("%s", "text", response=response)
    assert not caplog.records
    log_response("%s", "text", response=HttpResponse(status=500))
    assert len(caplog.records) == 1


@pytest.mark.parametrize("package", ["gunicorn", "prometheus_client"])
def test_the_version_has_an_upper_bound(package, pytestconfig):
    text = (pytestconfig.rootpath / "pyproject.toml").read_text()
    stated = [Requirement(line) for line in tomllib.loads(text)["project"]["dependencies"]]
    bound = next(one.specifier for one in stated if one.name.replace("-", "_") == package)
    assert version(package) in bound and any(one.operator == "<" for one in bound), str(bound)
