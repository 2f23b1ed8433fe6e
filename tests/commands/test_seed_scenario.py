"""manage.py seed_scenario"""

import hashlib
import json
from io import StringIO
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.maintenance.repair import find_incorrect_counts
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.scenarios.definitions import SCENARIOS, payload_type_names
from cdb_rest.scenarios.generator import rows_of_type
from cdb_rest.scenarios.layouts import LAYOUTS

pytestmark = pytest.mark.django_db(transaction=True)


def seed(*arguments):
    out = StringIO()
    call_command("seed_scenario", *arguments, stdout=out)
    return out.getvalue()


def test_tiny_has_ten_types_of_ten_iovs_and_is_made_once(api):
    assert "Global tag tiny created" in seed("tiny")
    before = api.get("gt").content
    assert "already exists: 10 payload lists, 100 IOVs" in seed("tiny")
    assert api.get("gt").content == before
    assert PayloadList.objects.count() == 10
    assert set(PayloadList.objects.values_list("iov_count", flat=True)) == {10}
    assert find_incorrect_counts() == []
    assert len(api.get("payloadiovs/?gtName=tiny&majorIOV=1&minorIOV=0").ok()) == 10


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
    assert digests == {"realistic": "addf49210d85e3ab", "random": "d6478c1461fa1660", "sequential": "4e90160bb310aa26"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("huge",),
        ("tiny", "--layout", "spiral"),
        ("tiny", "--clones", "-1"),
        *(("tiny", "--global-tag", name) for name in ("x" * 81, "a/b", ".", "..", " x", "x ", "a\nb", "")),
        ("tiny", "--global-tag", "x" * 75, "--clones", "1"),
    ],
)
def test_user_errors_are_one_line(arguments):
    with pytest.raises(CommandError) as caught:
        seed(*arguments)
    assert "\n" not in str(caught.value)
    assert GlobalTag.objects.count() == 0


def test_reset_makes_the_tag_anew_but_asks_before(monkeypatch):
    seed("tiny", "--layout", "sequential")
    before = GlobalTag.objects.get()
    with pytest.raises(CommandError, match="delete tiny"):
        seed("tiny", "--reset")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", lambda question: "n")
    with pytest.raises(CommandError, match="nothing was changed"):
        seed("tiny", "--reset")
    assert GlobalTag.objects.get().id == before.id
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert "created in" in seed("tiny", "--reset", "--seed", "2")
    after = GlobalTag.objects.get()
    assert after.id != before.id and after.payload_iov_count == PayloadIOV.objects.count() == 100
    assert after.revision > before.revision
    assert "created in" in seed("tiny", "--reset", "--yes", "--global-tag", "new")
