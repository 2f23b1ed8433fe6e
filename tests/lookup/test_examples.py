"""The lookup by examples: each strategy, through the API."""

import pytest

from cdb_rest.rules.moment import OPEN
from cdb_rest.strategies.registry import STRATEGIES

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("strategies_on")]
ROUTES = ["payloadiovs/", "payload-iovs/query", *(f"payloadiovs_strategies/{name}/" for name in STRATEGIES)]


@pytest.fixture(params=ROUTES)
def ask(request, api):
    def ask(major, minor, tag="tag", **more):
        query = "&".join(f"{key}={value}" for key, value in more.items())
        return api.get(f"{request.param}?gtName={tag}&majorIOV={major}&minorIOV={minor}&{query}")

    return ask


def test_rows_have_the_published_columns_in_the_published_order(ask, build):
    payload_list = build.list(build.tag(), "Gain")
    build.iov(payload_list, (1, 2), (3, 4), url='a"b\\ü.root', checksum="c" * 32, size=77, extra="0042")
    row = ["Gain", 'a"b\\ü.root', "c" * 32, 77, 1, 2, 3, 4, "0042"]
    assert ask(1, 2).ok() == [row]
    keys = [
        "payload_type_name",
        "payload_url",
        "checksum",
        "size",
        "major_iov",
        "minor_iov",
        "major_iov_end",
        "minor_iov_end",
        "revision",
    ]
    (found,) = ask(1, 2, shape="dict").ok()
    assert found == dict(zip(keys, row, strict=True))
    assert list(found) == keys


def test_a_missing_revision_is_null_and_missing_ends_are_open(ask, build):
    build.iov(build.list(build.tag()), (1, 2))
    assert ask(1, 2).ok()[0][6:] == [OPEN, OPEN, None]


def test_an_unknown_tag_is_404_and_a_tag_without_lists_is_empty(ask, build):
    build.tag("empty")
    ask(1, 1, tag="missing").error(404, "global_tag_not_found")
    assert ask(1, 1, tag="empty").ok() == []
    assert ask(1, 1, tag="empty", shape="dict").ok() == []


def test_a_moment_that_is_no_pair_of_64_bit_numbers_is_refused(ask, build):
    build.tag()
    for major in ("", "x", -1, 2**63, 1.5, "1e3", "0x1", "1_0", "%201", "\u0661"):
        ask(major, 1).error(400, "invalid_input")
    ask(1, "9" * 5000).error(400, "invalid_input")


def test_missing_and_wrong_parameters_are_named(api, build):
    build.tag()
    assert "gtName" in api.get("payloadiovs/?majorIOV=1&minorIOV=1").error(400)["detail"]
    assert "majorIOV" in api.get("payloadiovs/?gtName=tag&minorIOV=1").error(400)["detail"]
    assert "minorIOV" in api.get("payloadiovs/?gtName=tag&majorIOV=1").error(400)["detail"]
    assert "shape" in api.get("payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1&shape=tree").error(400)["detail"]
    assert "strict" in api.get("payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1&strict=maybe").error(400)["detail"]
