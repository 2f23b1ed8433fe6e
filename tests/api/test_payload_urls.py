"""The payload URLs of new rows, which follow one rule by every way in; existing rows keep theirs."""

import json
from io import StringIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from cdb_rest.models import PayloadIOV
from tests.api.helpers import INSERTION, ROW

pytestmark = pytest.mark.django_db(transaction=True)
ALLOWED = [
    "a", "a/b.root", "pixel/run5:v2.root", "/data/a", "./a", "a..b/c..", "...", "a b", "é", "5:6", "http://h/a", "HTTPS://h/a",
    "file:///data/a", "root://h//a", "davs://h:443/a", "x" * 255,
]  # fmt: skip
# What the error says.
REFUSED = {
    "": "The payload URL '' is blank.",
    " ": "The payload URL ' ' is blank.",
    "\u00a0": "is blank.",
    "a\nb": r"has the control character '\n' (U+000A) at position 2.",
    "a\tb": r"'\t' (U+0009) at position 2",
    "\x7f": r"'\x7f' (U+007F) at position 1",
    "a\x85b": r"'\x85' (U+0085) at position 2",
    "a\u2028b": r"'\u2028' (U+2028) at position 2",
    "a\u2029": r"'\u2029' (U+2029) at position 2",
    "..": "The payload URL '..' has the path segment '..'.",
    "../a": "has the path segment '..'.",
    "a/../b": "has the path segment '..'.",
    "http://h/a/..": "has the path segment '..'.",
    "a/%2E%2e/b": "has the path segment '..'.",
    "a\\..\\b": "has the path segment '..'.",
    "javascript:alert(1)": "has the scheme 'javascript'; allowed are http, https, file, root, davs (CDB_PAYLOAD_SCHEMES",
    " JavaScript:alert(1)": "has the scheme 'JavaScript'",
    "data:text/html,x": "has the scheme 'data'",
    "ftp://h/a": "has the scheme 'ftp'",
    "xrootd+s://h/a": "has the scheme 'xrootd+s'",
}


def command(path, content):
    """0 and nothing, or 400 and the error of the command."""
    path.write_text(content)
    try:
        call_command("import_iovs", str(path), "--global-tag=tag", stdout=StringIO())
    except CommandError as error:
        return 400, str(error)
    return 200, ""


def page(kind, values):
    response = Client(headers={"Accept": "text/html"}).post("/tags/tag/insert", {"kind": kind} | values)
    return response.status_code, response.context.get("problem", "")


def ways(api, tmp_path, payload_list, url):
    """The status and the error of each way to store a row with this payload URL. A form shows a preview."""
    file = json.dumps([{"payload_type": "Gain", "payload_url": url, "since": [5, 0]}])
    for path, body in (
        ("piov", ROW | {"payload_url": url}),
        ("payload-iovs", ROW | {"payload_url": url}),
        ("payload-iovs/insert", INSERTION | {"global_tag": "tag", "payload_url": url}),
        ("payload-iovs/insert", [INSERTION | {"global_tag": "tag", "payload_url": url, "since": [1, 0]}]),
        ("bulk_piov", [ROW | {"payload_list": payload_list, "payload_url": url, "major_iov_end": 7}]),
    ):
        answer = api.post(path, body)
        yield answer.status, str(answer.json.get("rows") or answer.json.get("payload_url"))
    yield command(tmp_path / "rows.json", file)
    yield page("file", {"file": SimpleUploadedFile("rows.json", file.encode())})
    yield page(
        "one", {"payload_type": "Gain", "payload_url": url, "checksum": "", "size": "", "since": "5", "until": ""}
    )


@pytest.mark.parametrize("url", ALLOWED)
def test_a_good_url_is_accepted_by_every_way(api, build, tmp_path, url):
    payload_list = build.list(build.tag()).name
    for status, message in ways(api, tmp_path, payload_list, url):
        assert status == 200, message
    assert PayloadIOV.objects.filter(payload_url=url).exists()


@pytest.mark.parametrize("url", REFUSED)
def test_a_bad_url_has_the_same_error_by_every_way(api, build, tmp_path, url):
    payload_list = build.list(build.tag()).name
    for status, message in ways(api, tmp_path, payload_list, url):
        assert status == 400
        # A list of rows is shown with escapes. A field that is empty is missing, for a form and a file.
        assert REFUSED[url] in message.replace(r"\\", "\\").replace(r"\'", "'") or (not url and "is " in message), (
            message
        )
    assert not PayloadIOV.objects.exists()


def test_a_setting_names_more_schemes(api, build, tmp_path, settings):
    payload_list = build.list(build.tag()).name
    settings.CDB_PAYLOAD_SCHEMES = ["XRootD", "s3"]
    for url in ("xrootd://h/a", "S3://bucket/a", "http://h/a"):
        assert {status for status, _ in ways(api, tmp_path, payload_list, url)} == {200}
    assert api.post("piov", ROW | {"payload_url": "gs://a"}).error(400)["payload_url"] == [
        "The payload URL 'gs://a' has the scheme 'gs'; allowed are http, https, file, root, davs, XRootD, s3 "
        "(CDB_PAYLOAD_SCHEMES adds others), and relative paths."
    ]


@pytest.mark.parametrize("url", [url for url in REFUSED if url])
def test_an_existing_row_is_read_cloned_and_moved(api, build, url):
    iov = build.iov(None, (1, 0), url=url)
    payload_list = build.list(build.tag())
    api.put("piov_attach", {"payload_list": payload_list.name, "piov_id": iov.id}).ok()
    api.post("cloneGlobalTag/tag/copy").ok()
    for tag in ("tag", "copy"):
        assert [row[1] for row in api.get(f"payloadiovs/?gtName={tag}&majorIOV=1&minorIOV=0").ok()] == [url]
        page = Client(headers={"Accept": "text/html"}).get(f"/tags/{tag}/lists/Gain")
        assert page.status_code == 200
