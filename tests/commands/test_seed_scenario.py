"""manage.py seed_scenario"""

import hashlib
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.domain.moment import OPEN
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from cdb_rest.scenarios.generator import LAYOUTS, rows_of_type
from cdb_rest.services.counts import find_wrong_counts

pytestmark = pytest.mark.django_db(transaction=True)


def seed(*arguments):
    out = StringIO()
    call_command("seed_scenario", *arguments, stdout=out)
    return out.getvalue()


def test_tiny_has_ten_types_of_ten_iovs_and_is_made_once(api):
    assert "Global tag tiny made" in seed("tiny")
    before = api.get("gt").content
    assert "is there already: 10 payload lists, 100 IOVs" in seed("tiny")
    assert api.get("gt").content == before
    assert PayloadList.objects.count() == 10
    assert set(PayloadList.objects.values_list("iov_count", flat=True)) == {10}
    assert find_wrong_counts() == []
    assert len(api.get("payloadiovs/?gtName=tiny&majorIOV=0&minorIOV=0").ok()) == 10


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_command_gives_the_same_bytes(api, layout):
    def answers(*arguments):
        seed("tiny", "--layout", layout, *arguments)
        texts = [
            api.get(f"payloadiovs/?gtName=tiny&majorIOV={major}&minorIOV=0").content
            for major in (0, 3, 9, 2**30, 2**31 - 1, OPEN)
        ]
        api.delete("deleteGlobalTag/tiny").ok()
        return texts

    first = answers()
    assert answers() == first
    assert answers("--seed", "2") != first


def test_the_generator_is_the_same_on_every_machine():
    scenario = SCENARIOS["tiny"]
    digests = {
        layout: hashlib.sha256(
            json.dumps(
                [list(rows_of_type(scenario, name, layout=layout, seed=1)) for name in payload_type_names(10)]
            ).encode()
        ).hexdigest()[:16]
        for layout in LAYOUTS
    }
    assert digests == {"sequential": "4e90160bb310aa26", "random": "d6478c1461fa1660"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_database_holds_what_the_generator_says(layout):
    seed("tiny", "--layout", layout, "--global-tag", "mine")
    assert list(GlobalTag.objects.values_list("name", flat=True)) == ["mine"]
    for payload_list in PayloadList.objects.select_related("payload_type"):
        rows = PayloadIOV.objects.filter(payload_list=payload_list).order_by("comb_iov")
        found = [
            (
                row.payload_url,
                row.checksum,
                row.size,
                (row.major_iov, row.minor_iov),
                (row.major_iov_end, row.minor_iov_end),
                row.extra,
            )
            for row in rows
        ]
        assert found == list(rows_of_type(SCENARIOS["tiny"], payload_list.payload_type.name, layout=layout, seed=1))


def test_scenarios_can_share_payload_types():
    seed("tiny")
    seed("tiny-moderate")
    assert {tag.name: tag.payload_iov_count for tag in GlobalTag.objects.all()} == {"tiny": 100, "tiny-moderate": 2000}


@pytest.mark.parametrize(
    "arguments",
    [("huge",), ("tiny", "--layout", "spiral"), ("tiny", "--global-tag", "x" * 81), ("tiny", "--global-tag", "a/b")],
)
def test_user_errors_are_one_line(arguments):
    with pytest.raises(CommandError) as caught:
        seed(*arguments)
    assert "\n" not in str(caught.value)
    assert GlobalTag.objects.count() == 0


def test_a_seeding_that_fails_leaves_nothing(monkeypatch):
    def rows(*_, **__):
        from cdb_rest.scenarios import generator

        yield from list(generator.rows(SCENARIOS["tiny"], layout="sequential", seed=1))[:3]
        raise KeyboardInterrupt

    monkeypatch.setattr("cdb_rest.scenarios.writer.rows", rows)
    with pytest.raises(KeyboardInterrupt):
        seed("tiny")
    assert GlobalTag.objects.count() == PayloadIOV.objects.count() == 0


def test_there_are_names_for_all_types_of_the_largest_scenario():
    names = payload_type_names(200)
    assert len(set(names)) == 200
