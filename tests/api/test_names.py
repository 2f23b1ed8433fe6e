"""Names of new global tags, payload types and statuses, which follow one rule by every way in; existing ones stay usable."""

import re
from html import unescape
from io import StringIO
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from cdb_rest.models import GlobalTag, GlobalTagStatus, PayloadType
from cdb_rest.routes import ROUTES
from cdb_rest.rules.names import PATH_WORDS

pytestmark = pytest.mark.django_db(transaction=True)
HEADER = "payload_type,payload_url,checksum,size,major_iov,minor_iov,major_iov_end,minor_iov_end,revision\n"
ALLOWED = ["7", "_", "Run24_v1.2", "x-y=z;a:b|c(1)*~!", "Clone", "x" * 80]
# What the error says.
REFUSED = {
    "": "The name is empty.",
    "x" * 81: "The name has 81 characters; at most 80 are allowed.",
    "p1#v2": "The name 'p1#v2' has the character '#' (U+0023) at position 3.",
    "p4?x": "'?' (U+003F) at position 3",
    "p3%41": "'%' (U+0025) at position 3",
    "a b": "' ' (U+0020) at position 2",
    " a": "' ' (U+0020) at position 1",
    "a ": "' ' (U+0020) at position 2",
    "a/b": "'/' (U+002F) at position 2",
    "a\\b": r"'\\' (U+005C) at position 2",
    "a<b": "'<' (U+003C) at position 2",
    "-x": "'-' (U+002D) at position 1",
    ".": "'.' (U+002E) at position 1",
    "..": "'.' (U+002E) at position 1",
    "G\u0430in": "'\u0430' (U+0430) at position 2",
    "a\u200b": r"'\u200b' (U+200B) at position 2",
    "a\x85": r"'\x85' (U+0085) at position 2",
    "a\nb": r"'\n' (U+000A) at position 2",
    "é": "'é' (U+00E9) at position 1",
    "statuses": "The name 'statuses' is not allowed, because it is a word of the API's paths.",
    "clone": "The name 'clone' is not allowed",
}


def form(path, values):
    """The status of the response to a form of a page, and its error."""
    response = Client(headers={"Accept": "text/html"}).post(path, values)
    found = re.search(r'role="alert"[^>]*>\s*(?:<p>)?(.*?)<', response.content.decode(), re.DOTALL)
    return response.status_code, unescape(found[1]) if found else ""


def command(*arguments):
    """0 and the output of a command, or 400 and its error."""
    out = StringIO()
    try:
        call_command(*arguments, stdout=out)
    except CommandError as error:
        return 400, str(error)
    return 200, out.getvalue()


def ways(api, tmp_path, name):
    """The status and the error of each way to create an object with this name. Creating by a form redirects (303)."""
    answers = [
        api.post("gt", {"name": name, "status": "unlocked"}),
        api.post("pt", {"name": name}),
        api.post("gtstatus", {"name": name}),
    ]
    GlobalTag.objects.filter(name=name).delete()
    if name and "/" not in name:
        answers.append(api.post(f"cloneGlobalTag/source/{quote(name, safe='')}"))
        GlobalTag.objects.filter(name=name).delete()
    for answer in answers:
        yield answer.status, answer.json.get("detail", "")
    PayloadType.objects.filter(name=name).delete()
    yield form("/new", {"name": name})
    yield form("/new", {"name": name, "action": "type"})
    GlobalTag.objects.filter(name=name).delete()
    yield form("/tags/source/manage", {"target": name, "action": "clone"})
    GlobalTag.objects.filter(name=name).delete()
    PayloadType.objects.filter(name=name).delete()
    file = tmp_path / "rows.csv"
    file.write_text(f"{HEADER}Gain,u,,0,1,0,2,0,\n")
    yield command("import_iovs", str(file), "--create", f"--global-tag={name}")
    GlobalTag.objects.filter(name=name, payload_lists__isnull=True).delete()
    if name and len(name) <= 80:
        quoted = name.replace('"', '""')
        file.write_text(f'{HEADER}"{quoted}",u,,0,1,0,2,0,\n')
        yield command("import_iovs", str(file), "--create", "--global-tag=source")
    if not GlobalTag.objects.filter(name=name).exists():
        yield command("seed_scenario", "tiny", f"--global-tag={name}")


@pytest.mark.parametrize("name", ALLOWED)
def test_a_good_name_is_accepted_by_every_way(api, build, tmp_path, name):
    build.tag("source")
    build.list(None, "Gain")
    for status, message in ways(api, tmp_path, name):
        assert status in (200, 303), message


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_name_has_the_same_error_by_every_way(api, build, tmp_path, name):
    build.tag("source")
    build.list(None, "Gain")
    kinds = (GlobalTag, PayloadType, GlobalTagStatus)
    before = [kind.objects.count() for kind in kinds]
    for status, message in ways(api, tmp_path, name):
        assert status == 400, message
        # The reader of files, which does not know the existing types, refuses control characters first.
        assert REFUSED[name] in message or "payload_type must not contain control characters" in message, message
    assert [kind.objects.count() for kind in kinds] == before


def test_the_words_of_the_paths_are_those_of_the_routes():
    parts = {part for route in ROUTES for path in route.paths for part in path.split("/")}
    assert {part for part in parts if part and "<" not in part} == PATH_WORDS


@pytest.mark.parametrize(
    ("name", "status"),
    [
        *((name, 200) for name in ("run 24@é", "-x", "run24")),
        *((name, 400) for name in ("RUN", "a/b", "a\nb", "a\x85b", "..", "clone", "", "x" * 81)),
    ],
)
def test_a_setting_names_another_pattern(api, settings, name, status):
    settings.CDB_NAME_PATTERN = r"[^A-Z]*"
    answer = api.post("pt", {"name": name})
    assert answer.status == status, answer.json
    assert form("/new", {"name": name})[0] == (303 if status == 200 else 400)


EXISTING = [
    "p1#v2", "p4?x", "p3%41", " x ", "G\u0430in", "a\u200bb", "a\x85b", "a b", "é", "a;b", "+", "..", "-x", "statuses",
]  # fmt: skip


@pytest.mark.parametrize("name", EXISTING)
def test_existing_objects_are_read_cloned_reverted_and_deleted(api, build, name):
    tag, escaped = build.tag(name), quote(name, safe="")
    build.iov(build.list(tag, name), (1, 0), url="u")
    assert api.get(f"globalTag/{escaped}?light").ok()["name"] == name
    assert api.get(f"payloadiovs/?gtName={escaped}&majorIOV=1&minorIOV=0").ok()[0][0] == name
    api.post(f"cloneGlobalTag/{escaped}/good").ok()
    assert list(api.get("gtPayloadLists/good").ok()) == [name]
    row = {"global_tag": "good", "payload_type": name, "payload_url": "v", "checksum": "", "until": "open"}
    api.post("payload-iovs/insert", row | {"since": [2, 0]}).ok()
    api.post("global-tags/good/revert", {"revision": 1}).ok()
    for one in ("good", escaped):
        api.delete(f"deleteGlobalTag/{one}").ok()
    api.delete(f"deletePayloadType/{escaped}").ok()
    assert not PayloadType.objects.exists() and not GlobalTag.objects.exists()


def test_a_command_lists_the_names_that_new_objects_could_not_have(api, build):
    build.list(build.tag("good"), "Good")
    assert command("check_names")[0] == 200
    build.list(build.tag("p1#v2"), "a\nb")
    GlobalTagStatus.objects.create(name="é")
    out = StringIO()
    with pytest.raises(CommandError, match=r"could not have: 3 \("):
        call_command("check_names", stdout=out)
    lines = out.getvalue().splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["global tag 'p1#v2'", r"payload type 'a\nb'", "status 'é'"]
    assert "'#' (U+0023) at position 3" in lines[0]


# The arguments with which each command takes the name of an existing tag or payload type.
COMMANDS = [
    ("import_iovs", "FILE", "--global-tag={}"),
    ("seed_scenario", "tiny", "--global-tag={}"),
    ("check_intervals", "--global-tag={}"),
    ("check_history", "--tag={}"),
    ("prune_history", "--keep=1", r"--tag=\Q{}\E"),
    ("explain_lookup", "--global-tag={}"),
    ("check_coverage", "--", "{}"),
    ("check_coverage", "--base={}", "--", "{}"),
    ("compile_tag", "--", "{}"),
    ("compiled", "--drop={}"),
    ("who-may", "--type={}", "--", "insert", "{}"),
    ("who-may", "insert", "--", "{}"),
]


@pytest.mark.parametrize("name", ["-x", "--version", "-", "a b", "a/b", "a\nb", "..", "é"])
def test_commands_take_every_existing_name(build, compiled_tags, tmp_path, name):
    build.iov(build.list(build.tag(name), name), (0, 0), url="u")
    file = tmp_path / "rows.csv"
    file.write_text(HEADER)
    for arguments in COMMANDS:
        given = [str(file) if one == "FILE" else one.replace("{}", name) for one in arguments]
        status, message = command(*given)
        assert status == 200, (arguments, message)
