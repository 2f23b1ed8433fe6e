"""Lookups at many moments and in several tags, with compiled tags."""

import pytest

from tests.lookup.compiling import insert, kinds, recompile

pytestmark = pytest.mark.django_db(transaction=True)
MOMENTS = [[major, minor] for major in range(6) for minor in (0, 7)]


def check(api, **more):
    """The results of a request for many moments are those of single lookups."""
    found = api.post("payload-iovs/query", {"gtName": "tag", "moments": MOMENTS} | more).ok()
    strict = "&strict=1" if more.get("strict") else ""
    rev = f"&rev={more['rev']}" if "rev" in more else ""
    results = {}
    for one in found:
        rows = one["rows"] if "rows" in one else found[one["same_as"]]["rows"]
        results |= {tuple(moment): rows for moment in one["moments"]}
    for major, minor in MOMENTS:
        path = f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV={minor}{strict}{rev}"
        assert results[major, minor] == api.get(path).ok(), path


@pytest.mark.parametrize("strict", [False, True])
def test_the_results_are_those_of_single_lookups(api, tag, strict):
    revision = int(api.get("globalTag/tag?light").headers["CDB-Revision"])
    before = kinds()
    check(api, strict=strict)
    assert kinds() != before
    insert(api, "Noise", 4)
    check(api, strict=strict)
    check(api, strict=strict, rev=revision)
    recompile()
    check(api, strict=strict)


def test_a_compiled_base_has_the_results_of_the_database(api, tag, build):
    build.iov(build.list(build.tag("patch"), "Gain"), (2, 0), (3, 0), url="patch")
    path = "payloadiovs/?gtName=patch&gtName=tag&majorIOV={}&minorIOV=0"
    assert [row[1] for row in api.get(path.format(2)).ok()] == ["patch", "file2", "file2"]
    assert [row[1] for row in api.get(path.format(3)).ok()] == ["file3", "file3", "file3"]
    insert(api, "Noise", 3, "new")
    assert [row[1] for row in api.get(path.format(3)).ok()] == ["file3", "new3", "file3"]
