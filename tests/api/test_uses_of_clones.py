"""The uses of payloads in lists that share rows: those that a copied tag would have."""

import pytest
from django.core.management import call_command

pytestmark = pytest.mark.django_db(transaction=True)

QUESTIONS = ["payload_url={}/x", "payload_url={}/y", "payload_url={}/z", "checksum={}-c", "url_prefix={}/"]
# What differs between a clone and a copy.
NOT_COMPARED = ("payload_list", "removed")


def insert(api, tag, name, since, until, payload_type="Gain"):
    row = {
        "global_tag": tag,
        "payload_type": payload_type,
        "payload_url": f"{tag[0]}/{name}",
        "checksum": f"{tag[0]}-c",
    }
    api.post("payload-iovs/insert", row | {"since": since, "until": until}).ok()


def clone(api, source, target, as_of=""):
    api.post(f"cloneGlobalTag/{source}/{target}{as_of}").ok()


def replace_list(api, tag):
    """Attach an empty list to the tag, so that the one that it had is detached."""
    name = api.post("pl", {"payload_type": "Gain"}).ok()["name"]
    api.put("pl_attach", {"payload_list": name, "global_tag": tag}).ok()


@pytest.fixture
def copy(api, tmp_path):
    """A function like `clone`, by the export and the import of all rows."""

    def copy(api, source, target, as_of=""):
        file = tmp_path / f"{target}.csv"
        file.write_bytes(api.get(f"global-tags/{source}/export{as_of}").content)
        call_command("import_iovs", str(file), f"--global-tag={target}", "--create", verbosity=0)

    return copy


def play(api, world, clone):
    """The uses after each of many writes to tags whose names begin with `world`, without this name."""
    base, first, second, third, past = (f"{world}-{name}" for name in ("base", "first", "second", "third", "past"))
    api.post("gt", {"name": base, "status": "unlocked"}).ok()
    for name, since, until in (("x", [1, 0], [5, 0]), ("y", [5, 0], [9, 0]), ("x", [9, 0], "open")):
        insert(api, base, name, since, until)
    insert(api, base, "x", [0, 0], "open", "Noise")

    def delete(tag):
        api.delete(f"deleteGlobalTag/{tag}").ok()

    steps = {
        "clone the base": lambda: clone(api, base, first),
        "write to the base": lambda: insert(api, base, "z", [2, 0], [3, 0]),
        "clone the clone": lambda: clone(api, first, second),
        "replace a row of the base": lambda: insert(api, base, "z", [5, 0], [9, 0]),
        "clone the base again": lambda: clone(api, base, third),
        "clone a past revision": lambda: clone(api, base, past, "?rev=4"),
        "write to the clone": lambda: insert(api, first, "z", [5, 0], [9, 0]),
        "detach a shared list": lambda: replace_list(api, third),
        "delete the base": lambda: delete(base),
        "clone the clone of a deleted base": lambda: clone(api, second, f"{world}-fourth"),
        "delete an unwritten clone": lambda: delete(second),
        "write to a clone of the deleted base": lambda: insert(api, past, "y", [1, 0], [2, 0]),
        "delete a written clone": lambda: delete(first),
    }
    seen = {}
    for step, write in steps.items():
        write()
        for question in QUESTIONS:
            for removed in "01":
                found = api.get(f"payload-iovs/uses?{question.format(world)}&removed={removed}").ok()
                seen[step, question, removed] = [_compared(use, world) for use in found]
    return seen


def _compared(use, world):
    removed = use["removed"] and use["removed"]["action"]
    rest = {name: value for name, value in use.items() if name not in NOT_COMPARED}
    return {name: str(value).removeprefix(world) for name, value in rest.items()} | {"ended_by": removed}


def test_clones_use_a_payload_as_copies_do(api, copy):
    for name in ("Gain", "Noise"):
        api.post("pt", {"name": name}).ok()
    shared, copied = play(api, "a", clone), play(api, "b", copy)
    for question, uses in shared.items():
        assert uses == copied[question], question
    # Both have uses in clones at all.
    assert {use["global_tag"] for use in shared["delete the base", "url_prefix={}/", "0"]} >= {"-second", "-past"}


def test_a_tag_that_was_deleted_without_its_history_has_no_uses(api):
    call_command("seed_scenario", "tiny", global_tag="a", verbosity=0)
    clone(api, "a", "b")
    call_command("seed_scenario", "tiny", global_tag="a", seed=2, reset=True, yes=True, verbosity=0)
    found = api.get("payload-iovs/uses?url_prefix=Pixel_Alignment/tiny/000000&removed=1").ok()
    assert sorted((use["global_tag"], use["removed"]) for use in found) == [("a", None), ("b", None)]
