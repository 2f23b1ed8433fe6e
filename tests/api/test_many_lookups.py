"""Lookups at many moments in one request, compared with single lookups."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.analysis_model import LAWS, MODES, MOMENTS, TAGS, made, names, of_tags
from tests.api.helpers import insert
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)


@settings(max_examples=examples(150), **LAWS)
@given(
    tags=st.lists(TAGS, min_size=1, max_size=2),
    moments=st.lists(MOMENTS, max_size=12),
    mode=MODES,
    strict=st.booleans(),
    shape=st.sampled_from(["list", "dict"]),
)
def test_many_lookups_have_the_results_of_single_ones(api, settings, tags, moments, mode, strict, shape):
    settings.CDB_IOV_MODE = mode.value
    with made(tags):
        body = {"gtName": names(tags), "moments": moments, "strict": strict, "shape": shape}
        found = api.post("payload-iovs/query", body).ok()
        bodies = [one["rows"] if "rows" in one else found[one["same_as"]]["rows"] for one in found]
        # Each distinct result comes once, and the moments come in the order of the request.
        distinct = [json.dumps(one["rows"]) for one in found if "rows" in one]
        assert len(distinct) == len(set(distinct))
        order = {moment: place for place, moment in reversed([*enumerate(moments)])}
        places = [[order[tuple(moment)] for moment in one["moments"]] for one in found]
        assert places == sorted(places, key=lambda group: group[0]) and all(group == sorted(group) for group in places)
        results = {tuple(moment): rows for one, rows in zip(found, bodies, strict=True) for moment in one["moments"]}
        assert results.keys() == set(moments)
        for moment, rows in results.items():
            path = f"payloadiovs/?{of_tags(tags)}&majorIOV={moment[0]}&minorIOV={moment[1]}&shape={shape}"
            assert rows == api.get(f"{path}&strict=1" if strict else path).ok()


def test_a_query_of_many_moments_asks_for_the_past(api, tag):
    insert(api, "second", [1, 0])
    body = {"gtName": "tag", "moments": [[5, 0]]}
    for rev, url in ((2, "first"), (3, "second")):
        answer = api.post("payload-iovs/query", body | {"rev": rev})
        assert answer.ok()[0]["rows"][0][1] == url
        assert answer.headers["CDB-Revision"] == str(rev)
    stack = body | {"gtName": ["tag", "tag"], "rev": [2, None]}
    answer = api.post("payload-iovs/query", stack)
    assert answer.ok()[0]["rows"][0][1] == "first"
    assert answer.headers["CDB-Revision"] == "2,3"
    api.post("payload-iovs/query", stack | {"rev": [1]}).error(400, "invalid_input")
    api.post("payload-iovs/query", body | {"gtName": "none"}).error(404, "global_tag_not_found")
    api.post("payload-iovs/query", {"gtName": "none", "moments": []}).error(404, "global_tag_not_found")
    api.post("payload-iovs/query", body | {"stricd": 1}).error(400, "invalid_input")
    api.post("payload-iovs/query", body | {"moments": [[1, 0]] * 10_001}).error(400, "invalid_input")
    many = {"gtName": ["tag"] * 2, "moments": [[n, 0] for n in range(5001)]}
    assert "10000" in api.post("payload-iovs/query", many).error(400, "invalid_input")["detail"]
    assert len(api.post("payload-iovs/query", body | {"moments": [[n, 0] for n in range(10_000)]}).ok()) == 4
