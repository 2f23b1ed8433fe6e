"""The strategies of the lookup in clones, whose payload lists share rows."""

import pytest

from cdb_rest.strategies.registry import STRATEGIES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("strategies_on")]


def insert(api, tag, url, since, until, payload_type="Gain"):
    row = {"global_tag": tag, "payload_type": payload_type, "payload_url": url, "checksum": "c"}
    api.post("payload-iovs/insert", row | {"since": since, "until": until}).ok()


@pytest.fixture(params=STRATEGIES)
def ask(request, api):
    """The URLs at a moment in the tag `copy`, by a strategy."""

    def ask(major):
        found = api.get(f"payloadiovs_strategies/{request.param}/?gtName=copy&majorIOV={major}&minorIOV=0").ok()
        return [row[1] for row in found]

    return ask


def test_each_strategy_finds_the_rows_that_a_clone_shares(api, ask):
    for name in ("Gain", "Noise"):
        api.post("pt", {"name": name}).ok()
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    insert(api, "tag", "a", [1, 0], [5, 0])
    insert(api, "tag", "b", [5, 0], "open")
    insert(api, "tag", "noise", [0, 0], "open", "Noise")

    def answers():
        return [ask(major) for major in (0, 1, 2, 4, 5, 9)]

    api.post("cloneGlobalTag/tag/copy").ok()
    expected = [["noise"], *[["a", "noise"]] * 3, *[["b", "noise"]] * 2]
    assert answers() == expected
    insert(api, "tag", "new", [2, 0], [9, 0])
    assert answers() == expected
    api.delete("deleteGlobalTag/tag").ok()
    assert answers() == expected
    # Now one of the lists has rows of its own, and the other one shares them.
    insert(api, "copy", "own", [2, 0], [3, 0])
    assert answers() == [*expected[:2], ["own", "noise"], *expected[3:]]
