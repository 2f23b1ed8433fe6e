"""Invalid requests: each gets a clear error in JSON, never a 500, and changes nothing."""

import pytest

from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.moment import OPEN
from tests.api.helpers import LOOKUP, READS, WRITES

pytestmark = pytest.mark.django_db

BODIES = {
    "empty": b"",
    "broken": b"{",
    "null": b"null",
    "number": b"5",
    "text": b'"text"',
    "array": b"[]",
    "array of null": b"[null]",
    "array of arrays": b"[[]]",
    "object": b"{}",
    "unexpected members": b'{"payload_lists": {"a": [1]}}',
    "invalid UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"name": "a"}',
    "lone surrogate": b'{"name": "\\ud800", "status": "unlocked"}',
    "NUL in a text": b'{"name": "a\\u0000b", "status": "a\\u0000b", "payload_type": "\\u0000", "payload_list": "\\u0000"}',
    "deep": b"[" * 100_000,
    "deep and closed": b"[" * 5_000 + b"]" * 5_000,
    "NaN": b'{"major_iov": NaN, "minor_iov": Infinity}',
    "huge number": b'{"major_iov": 1e999, "minor_iov": ' + b"9" * 5_000 + b"}",
    "form": b"name=a&status=unlocked",
}
NASTY_VALUES = [
    None, True, 5, -1, 2**63, 2**64, 10**30, 1.5, 1e300, "", " ", "5", "-5", "x" * 81, "x" * 256, "x" * 100_000, "a/b", "..",
    "a\x00b", "a\nb", " a", "a ", "\u0661", "1_0", [], [1], {}, {"a": 1}, "'; DROP TABLE", "%s", "%(a)s", "\U0001f600" * 80,
]  # fmt: skip
NASTY_PARTS = [
    "x" * 81, "x" * 5_000, "%00", "a%00b", "%FF", "%ED%A0%80", "%F0%9F%98%80", "%0A", "..", "'", "%25s", "-1", str(2**63),
]  # fmt: skip
FORMS = {
    "gt": {"name": "n", "status": "unlocked", "author": "a", "description": "d"},
    "gtstatus": {"name": "n"},
    "pt": {"name": "n"},
    "pl": {"payload_type": "Gain"},
    "pl_attach": {"global_tag": "tag", "payload_list": "LIST"},
    "piov": {
        "payload_url": "u", "checksum": "c", "major_iov": 1, "minor_iov": 1, "major_iov_end": 2, "minor_iov_end": 2,
        "size": 1, "revision": 1,
    },
    "piov_attach": {"payload_list": "LIST", "piov_id": 1},
    "global-tags/tag/revert": {"revision": 1, "dry_run": False, "comment": "why"},
    "requests": {"global_tag": "tag", "kind": "clone", "document": {"clone_of": "tag"}, "reason": "why"},
    "payload-iovs/insert": {
        "global_tag": "tag", "payload_type": "Gain", "payload_url": "u", "checksum": "c", "size": 1, "revision": 1,
        "since": [1, 1], "until": [2, 2], "dry_run": False, "comment": "why",
    },
}  # fmt: skip


def contents():
    return [
        list(model.objects.order_by("id").values_list("id"))
        for model in (GlobalTag, PayloadType, PayloadList, PayloadIOV)
    ]


# Requests that read many rows need a transaction of their own.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "path"), WRITES)
def test_bad_bodies(api, payload_list, login, method, path):
    headers = login("administrator")
    may_be_taken = {(path, "array") for path in ("bulk_piov", "payload-iovs/insert")}
    may_be_taken |= {(path, "byte order mark") for path in ("gtstatus", "pt")}
    for name, body in BODIES.items():
        before = contents()
        answer = api(method, path, raw=body, **headers)
        if answer.status == 200:
            assert (path, name) in may_be_taken
            continue
        answer.error(answer.status)
        assert answer.status in (400, 404), name
        assert contents() == before, name


@pytest.mark.parametrize(("path", "field"), [(path, field) for path, form in FORMS.items() for field in form])
def test_every_nasty_value_in_every_field(api, payload_list, build, login, path, field):
    headers = login("administrator")
    build.iov(None, (0, 0))
    method = "PUT" if path.endswith("attach") else "POST"
    for value in NASTY_VALUES:
        body = {key: payload_list.name if text == "LIST" else text for key, text in FORMS[path].items()} | {
            field: value
        }
        answer = api(method, path, body, **headers)
        assert answer.status in (200, 400, 404), (value, answer.json)
        if answer.status != 200:
            answer.error(answer.status)
        if field.endswith(("iov", "end", "size")) and isinstance(value, int) and not 0 <= value <= OPEN:
            assert field in answer.error(400)
        GlobalTag.objects.filter(name="n").delete()
        PayloadType.objects.filter(name="n").delete()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", READS)
def test_nasty_paths_and_queries(api, path):
    for value in NASTY_PARTS:
        for url in (
            path.replace("{}", value),
            f"{path.replace('{}', 'x')}?gtName={value}&majorIOV={value}&minorIOV={value}&page={value}",
        ):
            answer = api.get(url)
            assert answer.status in (200, 400, 404), (url, answer.json)
            if answer.status != 200:
                answer.error(answer.status)


def test_numbers_may_come_as_strings_and_null_for_what_may_be_left_out(api):
    body = {"payload_url": "u", "checksum": "c", "major_iov": "5", "minor_iov": "05"}
    iov = api.post("piov", body | {"size": None, "revision": "", "major_iov_end": None}).ok()
    assert (iov["major_iov"], iov["minor_iov"], iov["size"], iov["revision"]) == (5, 5, 0, None)
    assert iov["major_iov_end"] == OPEN


SUGGESTED = [
    ("globalTag/run2024_prod_v1", "did you mean 'run2024_prod_v2'?"),
    ("globalTag/run2024_prod_v1?light", "did you mean 'run2024_prod_v2'?"),
    ("globalTag/RUN2024_PROD_V2", "did you mean 'run2024_prod_v2'?"),
    ("gtPayloadLists/run2024prod_v2", "did you mean 'run2024_prod_v2'?"),
    ("payloadiovs/?gtName=urn2024_prod_v2&majorIOV=0&minorIOV=0", "did you mean 'run2024_prod_v2'?"),
    ("global-tags/rum2024_prod_v2/export", "did you mean 'run2024_prod_v2'?"),
    (f"{LOOKUP}&payloadType=gain", "There is no payload type 'gain'; did you mean 'Gain'?"),
    ("payload-iovs/range?gtName=tag&payload_type=Gian", "There is no payload type 'Gian'; did you mean 'Gain'?"),
    ("globalTag/entirely-different", "There is no global tag 'entirely-different'."),
    ("globalTag/" + "x" * 5000, "…'."),
    ("globalTag/%25s", "There is no global tag '%s'."),
    ("globalTag/ta%0Ag", "There is no global tag 'ta\\ng'; did you mean 'tag'?"),
    ("payload-lists/by-name/x%C2%A0", "There is no payload list 'x\\xa0'."),
    ("pl/99", "There is no payload list 99."),
    ("globaltags", "did you mean /api/cdb_rest/globalTags?"),
    ("globalTags/run24", "did you mean /api/cdb_rest/global-tags/<name>?"),
    ("payloadiov/?gtName=x", "did you mean /api/cdb_rest/payloadiovs/?"),
    ("global-tags/x/exports", "did you mean /api/cdb_rest/global-tags/<name>/export?"),
    ("nothing/of/this/kind", "There is nothing at '/api/cdb_rest/nothing/of/this/kind'."),
    ("x" * 5000, "…'."),
]


@pytest.mark.django_db(transaction=True)
def test_the_nearest_name_is_suggested(api, payload_list, build):
    for number in range(150):
        build.tag(f"run2024_test_{number:02}")
    build.tag("run2024_prod_v2")
    for number in range(150):
        build.tag(f"run2023_test_{number:02}")
    for path, text in SUGGESTED:
        detail = api.get(path).error(404)["detail"]
        assert detail.endswith(text), (path, detail)
