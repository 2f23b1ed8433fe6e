"""Hot reads without Django: their responses are those of the views, byte for byte."""

from datetime import timedelta

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import DatabaseError
from django.db.models.functions import Now

from cdb_rest.models import GlobalTag, GlobalTagStatus, PayloadType
from cdb_rest.wsgi.shortcut import Shortcut
from tests import wsgi
from tests.builders import Builder

pytestmark = pytest.mark.django_db
PREFIX = "/api/cdb_rest/"
GOOD = "gtName=tag&majorIOV=5&minorIOV=0"


def environ(path="payloadiovs/", query=GOOD, **variables):
    return wsgi.environ(PREFIX + path, query, **variables)


class LongWay:
    """Django, which notes whether it was asked."""

    def __init__(self):
        self._handler = WSGIHandler()
        self.asked = False

    def __call__(self, environ, start_response):
        self.asked = True
        return self._handler(environ, start_response)


@pytest.fixture
def ask(build):
    with wsgi.kept_connection():
        yield _ask


def _ask(environ, first=True):
    """Status line, headers without the times, body, and whether Django was asked."""
    said = []
    django = LongWay()
    application = Shortcut(django) if first else django
    answer = application(environ, lambda line, headers: said.append((line, dict(headers))))
    body = b"".join(answer)
    [(line, headers)] = said
    assert headers.pop("Server-Timing")
    # The framework repeats this one from the view's methods, also in its refusals of what it does not know.
    headers.pop("Allow", None)
    # It is told from the next second on, which may begin between two requests.
    headers.pop("Last-Modified", None)
    return line, headers, body, django.asked


@pytest.fixture
def tag():
    build = Builder()
    tag = build.tag()
    build.iov(build.list(tag, "Gain"), (1, 2), (7, 0), url='a"b\\ü.root', extra="7")
    build.iov(build.list(tag, "Noise"), (2, 0), (3, 0))
    build.tag("Müller & Söhne+1")
    return tag


SHORT = [
    environ(),
    environ("payloadiovs"),
    environ("payload-iovs/query"),
    environ("payload-iovs/query/"),
    environ(query=GOOD + "&strict=1"),
    environ(query=GOOD + "&shape=dict&strict=0&unknown=1"),
    environ(query="gtName=M%C3%BCller+%26+S%c3%B6hne%2B1&majorIOV=5&minorIOV=0"),
    environ(query=GOOD + "&payloadType=Gain"),
    environ(query=GOOD + "&payload_type=Gain%2CNoise&shape=dict"),
    environ(query=GOOD + "&payloadType=missing"),
    environ(query="gtName=%ff&majorIOV=5&minorIOV=0"),
    environ(query="gtName=missing&majorIOV=5&minorIOV=0"),
    environ(query="gtName=tag&majorIOV=9223372036854775807&minorIOV=9223372036854775807"),
    environ(query=GOOD + "&window=1"),
    environ(query=GOOD + "&strict=1&window=true&snap=1"),
    environ(HTTP_IF_NONE_MATCH="*"),
    environ(HTTP_IF_NONE_MATCH='W/"1-2-3-4", "5"'),
    environ(HTTP_IF_MODIFIED_SINCE="Sun, 06 Nov 1994 08:49:37 GMT"),
    environ(HTTP_IF_MODIFIED_SINCE="never"),
    environ(HTTP_HOST="127.0.0.1:8000", CONTENT_LENGTH=""),
    environ(CONTENT_LENGTH="0", HTTP_ACCEPT="text/html"),
]


@pytest.mark.parametrize("request_", SHORT, ids=lambda request: f"{request['PATH_INFO']}?{request['QUERY_STRING']}")
def test_lookups_are_answered_without_django_and_just_as_with_it(ask, tag, request_):
    *answer, asked = ask(dict(request_))
    assert not asked
    assert answer == list(ask(dict(request_), first=False)[:3])


@pytest.mark.parametrize("query", [GOOD, GOOD + "&window=1"])
def test_a_matching_validator_gets_304_with_and_without_django(ask, tag, query):
    line, headers, body, _ = ask(environ(query=query))
    assert line == "200 OK" and body
    again = environ(query=query, HTTP_IF_NONE_MATCH=f'"other", W/{headers["ETag"]}')
    line, not_modified, body, asked = ask(dict(again))
    assert (line, body, asked) == ("304 Not Modified", b"", False)
    assert [line, not_modified, body] == list(ask(dict(again), first=False)[:3])
    assert not_modified.items() <= headers.items() and not {"Content-Type", "Content-Length"} & set(not_modified)


HOT = [
    ("globalTags", ""),
    ("global-tags/", ""),
    ("globalTag/tag/", "light=0"),
    ("global-tags/tag", "light=1"),
    ("gtPayloadLists/tag", ""),
    ("global-tags/tag/payload-lists/", ""),
    ("gtstatus", ""),
    ("global-tags/statuses/", ""),
    ("pt", ""),
    ("payload-types", ""),
]
ABSENT = [
    ("globalTag/missing", "light"),
    ("gtPayloadLists/missing", ""),
    ("globalTag/a b", "light"),
    ("user_settings/no", ""),
]


@pytest.mark.parametrize(("path", "query"), [*HOT, *ABSENT, ("user_settings/CDB_IOV_MODE", "")])
def test_hot_reads_are_answered_without_django_and_just_as_with_it(ask, tag, path, query):
    *answer, asked = ask(environ(path, query))
    assert not asked and answer[2]
    assert answer == list(ask(environ(path, query), first=False)[:3])
    # A body that is kept is the same one.
    assert answer == list(ask(environ(path, query))[:3])


def write_everywhere():
    """As the service writes, so that each hot read has another answer; the revision tells it in this one transaction."""
    Builder().iov(GlobalTag.objects.get(name="tag").payload_lists.first(), (9, 9))
    Builder().list(GlobalTag.objects.get(name="tag"), "Pedestal")
    GlobalTag.objects.filter(name="tag").update(revision=5, updated=Now() + timedelta(seconds=1))
    GlobalTagStatus.objects.create(name="reviewed")
    PayloadType.objects.create(name="Late")


@pytest.mark.parametrize(("path", "query"), HOT)
def test_after_a_write_hot_reads_have_the_new_answer(ask, tag, path, query):
    _, headers, before, _ = ask(environ(path, query))
    again = environ(path, query, HTTP_IF_NONE_MATCH=headers["ETag"])
    *not_modified, asked = ask(dict(again))
    assert not_modified[0] == "304 Not Modified" and not asked
    assert not_modified == list(ask(dict(again), first=False)[:3])
    write_everywhere()
    line, _, body, asked = ask(dict(again))
    assert (line, asked) == ("200 OK", False) and body != before
    assert body == ask(environ(path, query), first=False)[2]


@pytest.mark.django_db(transaction=True)
def test_a_whole_tag_is_confirmed_without_django(ask, tag):
    _, headers, _, asked = ask(environ("globalTag/tag", ""))
    assert asked
    again = environ("globalTag/tag", "", HTTP_IF_NONE_MATCH=headers["ETag"])
    *not_modified, asked = ask(dict(again))
    assert not_modified[0] == "304 Not Modified" and not asked
    assert not_modified == list(ask(dict(again), first=False)[:3])


@pytest.mark.parametrize(
    ("path", "query", "more"),
    [
        ("globalTags", "page=1", {}),
        ("globalTags", "unknown=1", {}),
        ("payloadiovs/", f"{GOOD}&payloadType=Gain&payloadType=Noise", {}),
        ("payloadiovs/", f"{GOOD}&Strict=1", {}),
        ("payloadiovs/", f"{GOOD}&revision=1", {}),
        ("globalTag/a/b", "light", {}),
        ("gt", "", {}),
        ("globalTag/M\xc3\xbcller & S\xc3\xb6hne+1", "light", {}),
        ("globalTag/tag", "rev=1", {}),
        ("globalTag/tag", "light&at=2026-01-01", {}),
        ("global-tags/tag/payload-lists", "%72ev=1", {}),
        ("globalTag/tag", "light", {"HTTP_HOST": "evil.example"}),
        ("globalTag/tag", "light", {"REQUEST_METHOD": "HEAD"}),
        ("globalTags", "", {"HTTP_IF_MATCH": '"1"'}),
    ],
)
def test_unusual_ones_are_left_to_django(ask, tag, path, query, more):
    assert ask(environ(path, query, **more))[3]


@pytest.mark.parametrize("path", ["globalTags", "globalTag/tag"])
def test_a_database_that_is_down_is_an_error_without_asking_twice(ask, tag, monkeypatch, path):
    def fail(*_):
        raise DatabaseError("the server died")

    monkeypatch.setattr("cdb_rest.http.hot_reads.fetch_all", fail)
    line, headers, _, asked = ask(environ(path, "" if path == "globalTags" else "light"))
    assert line == "504 Gateway Timeout" and headers["Retry-After"] and not asked
