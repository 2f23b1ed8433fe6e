"""The command: its forms of output, its options, and how it behaves on a terminal, in a pipe and in a shell."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cdb_client.cli.main import cdb as group

from .conftest import new_name

IOV = ["payload_type", "url", "checksum", "size", "since", "until", "revision"]
PIXEL = [
    *("Pixel_Alignment", "Pixel_Alignment/tiny/000000_dcd93f5b.root", "dcd93f5b105faddf594ee445f50aeac9"),
    *("905595", "1,0", "14,2459", "1"),
]
# Commands that print rows, with what they print at least.
ROWS = {
    "tags tiny": "tiny",
    "types": "Pixel_Alignment",
    "resolve tiny 5": "Pixel_Alignment",
    "resolve tiny 5 --strict --type Pixel_Alignment --type Cherenkov_Alignment": "Pixel_Alignment",
    "iovs tiny --type Pixel_Alignment": "open",
    "diff tiny EMPTY": "Pixel_Alignment",
    "diff tiny EMPTY --summary": "Pixel_Alignment",
    "log tiny --last 1": "seed",
    "uses --prefix Pixel_Alignment/tiny/000000": "tiny",
    "explain tiny 5": "valid",
}
# Commands that print one object, with one of its members.
OBJECTS = {
    "show tiny": "payload_iov_count",
    "log tiny 1": "after",
    "coverage tiny": "complete",
    "whoami": "permissions",
    "config": "server",
    "cache info": "directory",
    "snapshot info SNAPSHOT": "tags",
    "snapshot verify SNAPSHOT": "checksum",
}


@pytest.mark.parametrize("form", ["table", "json", "csv", "plain"])
@pytest.mark.parametrize("text", [*ROWS, *OBJECTS])
def test_every_command_in_every_form(cdb, api, tmp_path, text, form):
    if "SNAPSHOT" in text:
        assert cdb("snapshot", "create", "--tag", "tiny", tmp_path / "SNAPSHOT", "--quiet").code == 0
    empty = api.make_tag([]) if "EMPTY" in text else ""
    line = text.replace("SNAPSHOT", str(tmp_path / "SNAPSHOT")).replace("EMPTY", empty)
    done = cdb(*line.split(), "-o", form)
    assert done.code == 0, done.err
    if form == "json":
        found = json.loads(done.out)
        assert OBJECTS[text] in found if text in OBJECTS else isinstance(found, list)
    elif form == "csv":
        widths = {len(row) for row in csv.reader(io.StringIO(done.out))}
        assert len(widths) == 1
    assert form == "json" or text in OBJECTS or ROWS[text] in done.out
    assert "\x1b" not in done.out


def test_a_lookup_in_json_has_moments_of_two_numbers_and_plain_text_is_for_cut(cdb):
    options = ("resolve", "tiny", "5,0", "--type", "Pixel_Alignment")
    [found] = json.loads(cdb(*options, "-o", "json").out)
    assert list(found) == IOV
    assert (found["since"], found["until"], found["size"]) == ([1, 0], [14, 2459], 905595)
    assert cdb(*options).out.splitlines() == ["\t".join(PIXEL)]
    assert list(csv.reader(io.StringIO(cdb(*options, "-o", "csv").out))) == [IOV, PIXEL]


def test_options_may_stand_before_and_after_the_command(cdb, server, tmp_path):
    options = ["--server", server, "-o", "json", "--retry-for", "1", "--fresh", "--no-cache", "--quiet", "--rev", "1"]
    places = ([*options, "show", "tiny"], ["show", *options, "tiny"], ["show", "tiny", *options])
    assert len({cdb(*arguments) for arguments in places}) == 1
    file = tmp_path / "tiny.cdb"
    assert cdb("snapshot", "-o", "json", "create", file, "--tag", "tiny").code == 0
    assert cdb("--snapshot", file, "resolve", "tiny", "5") == cdb("resolve", "tiny", "5", "--snapshot", file)
    assert cdb("resolve", "tiny", "5").out == cdb("--snapshot", file, "resolve", "tiny", "5").out


def test_the_past_and_several_tags(cdb, api):
    base = api.make_tag([("Past_A", "one.root", [1, 0], "open"), ("Past_B", "b.root", [1, 0], "open")])
    patch = api.make_tag([("Past_A", "patch.root", [5, 0], [6, 0])])
    assert cdb("insert", base, "Past_A", "two.root", "--since", "7", "--until", "open").code == 0
    revision = json.loads(cdb("show", base, "-o", "json").out)["revision"]

    def urls(*arguments):
        return [row["url"] for row in json.loads(cdb("resolve", *arguments, "-o", "json").out)]

    assert urls(base, "7") == ["two.root", "b.root"]
    assert urls(f"{base}@{revision - 1}", "7") == urls(base, "7", "--rev", revision - 1) == ["one.root", "b.root"]
    assert urls(f"{patch},{base}", "5,3") == ["patch.root", "b.root"]
    assert urls(f"{patch},{base}@{revision - 1}", "7") == ["one.root", "b.root"]
    time = json.loads(cdb("log", base, "-o", "json").out)[1]["time"]
    assert urls(f"{base}@{time}", "7") == urls(base, "7", "--at", time) == ["one.root", "b.root"]
    [difference] = json.loads(cdb("diff", f"{base}@{revision - 1}", base, "-o", "json").out)
    assert (difference["a"]["payload_url"], difference["b"]["payload_url"]) == ("one.root", "two.root")


def test_a_tag_from_its_creation_to_its_freezing(cdb, tmp_path):
    tag, payload_type, file = new_name(), new_name("type"), tmp_path / "ped.root"
    file.write_bytes(b"pedestals")
    assert cdb("create", "type", payload_type).code == cdb("create", "tag", tag, "-m", "for a test").code == 0
    insert = ("insert", tag, payload_type, "ped.root", "--until", "open", "--file", file)
    assert "Dry run" in cdb(*insert, "--since", "100", "--dry-run").err
    assert cdb("resolve", tag, "100").out == ""
    done = cdb(*insert, "--since", "100", "--reason", "first")
    assert done.out.split() == [payload_type, "added", "ped.root", "100,0", "open"] and f"{tag}@2" in done.err
    [found] = json.loads(cdb("resolve", tag, "100", "-o", "json").out)
    assert (found["size"], len(found["checksum"])) == (9, 32)
    assert cdb("export", tag, tmp_path / "all.csv").code == 0
    assert cdb("clone", f"{tag}@1", f"{tag}b").code == 0
    done = cdb("import", f"{tag}b", tmp_path / "all.csv", "-o", "json")
    assert json.loads(done.out)["inserted"] == 1
    assert cdb("diff", tag, f"{tag}b").out == ""
    assert cdb("lock", tag).code == cdb("unlock", tag).code == cdb("freeze", tag, "-m", "done").code == 0
    actions = [row["action"] for row in json.loads(cdb("log", tag, "-o", "json").out)]
    assert actions == ["status", "status", "status", "insert", "create"]


def test_a_configuration_with_named_servers_and_the_cache(cdb, server, tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'default = "here"\n[servers.here]\nurl = "{server}"\n')
    monkeypatch.setenv("CDB_SERVER", "")
    assert cdb("resolve", "tiny", "5").code == 0
    found = json.loads(cdb("--server", "here", "config", "-o", "json").out)
    assert (found["server"], found["token"]) == (server, None)
    assert json.loads(cdb("cache", "info", "-o", "json").out)["lookups_bytes"] > 0
    assert cdb("cache", "clear").code == 0
    assert json.loads(cdb("cache", "info", "-o", "json").out)["lookups_bytes"] == 0


def commands(command, path=()):
    yield path
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*path, name))


@pytest.mark.parametrize("path", [*commands(group)], ids=" ".join)
def test_every_command_has_a_help_text_with_an_example(cdb, path):
    done = cdb(*path, "--help")
    assert done.code == 0 and "Usage: cdb" in done.out
    found = group
    for name in path:
        found = found.commands[name]
    assert hasattr(found, "commands") or re.search(rf"Example.*\n?.*cdb {' '.join(path)}", done.out)


def on_terminal(server, *arguments, answer="", **environment):
    """The exit code of a command whose standard files are a terminal of 200 columns, and what it printed there."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cdb_client", *map(str, arguments)],
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200", "CDB_SERVER": server} | environment,
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    os.write(ours, answer.encode())
    printed = b""
    # Linux reports the end as an error.
    with contextlib.suppress(OSError):
        while data := os.read(ours, 65536):
            printed += data
    os.close(ours)
    return process.wait(30), printed.decode()


def test_a_terminal_gets_a_table_in_colours(server):
    code, printed = on_terminal(server, "tags", "tiny")
    assert code == 0 and "─" in printed and "\x1b[33munlocked" in printed
    code, printed = on_terminal(server, "tags", "tiny", NO_COLOR="1")
    assert code == 0 and "─" in printed and "\x1b" not in printed


def test_texts_of_others_do_not_control_the_terminal(server, api):
    tag = api.make_tag([])
    api("PUT", f"gt_change_status/{tag}/locked", {"comment": "red \x1b[31m [bold]text[/bold]"})
    code, printed = on_terminal(server, "log", tag, NO_COLOR="1")
    assert code == 0 and "\x1b" not in printed and "[bold]text[/bold]" in printed


def test_an_insertion_shows_what_changes_and_asks(server, api, cdb):
    tag = api.make_tag([("Ask_A", "one.root", [1, 0], "open")])
    insert = ("insert", tag, "Ask_A", "two.root", "--since", "5", "--until", "6")
    code, printed = on_terminal(server, *insert, answer="n\n")
    assert code == 130 and "split" in printed and "[y/N]" in printed
    assert "one.root" in cdb("resolve", tag, "5").out
    code, printed = on_terminal(server, *insert, answer="y\n")
    assert code == 0 and "two.root" in cdb("resolve", tag, "5").out
    code, printed = on_terminal(server, "freeze", tag, "--yes")
    assert code == 0 and "[y/N]" not in printed


def test_files_are_downloaded_with_a_progress_bar_on_a_terminal_only(server, api, start, tmp_path, monkeypatch):
    rows = [(f"Files_{number}", f"{number}.root", [1, 0], "open", {"size": number}) for number in range(20)]
    for number in range(20):
        (tmp_path / f"{number}.root").write_bytes(b"x" * number)
    monkeypatch.setenv("CDB_PAYLOAD_BASE_URL", str(tmp_path))
    get = ("get", api.make_tag(rows), "5", "--to")
    code, printed = on_terminal(server, *get, tmp_path / "a")
    assert code == 0 and "payload files" in printed and "/20" in printed
    out, err = start(*get, tmp_path / "b").communicate()
    assert err == "" and {Path(path).stat().st_size for path in out.splitlines()} == set(range(20))
    code, printed = on_terminal(server, *get, tmp_path / "c", "--quiet")
    assert code == 0 and "payload files" not in printed


@pytest.mark.parametrize("form", ["plain", "json", "table", "csv"])
def test_a_pipe_that_is_closed_is_no_error(server, form):
    command = f"{sys.executable} -m cdb_client iovs tiny -o {form} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=os.environ | {"CDB_SERVER": server}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_one_line(server):
    command = [sys.executable, "-m", "cdb_client", "tags"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, env=os.environ | {"CDB_SERVER": server}, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and b"No space left" in done.stderr


def test_bash_completes_commands_options_and_names_of_tags(server, tmp_path):
    (tmp_path / "cdb").write_text(f'#!/bin/sh\nexec {sys.executable} -m cdb_client "$@"\n')
    (tmp_path / "cdb").chmod(0o755)
    script = """
    eval "$(_CDB_COMPLETE=bash_source cdb)"
    complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cdb_completion cdb; echo "${COMPREPLY[@]}"; }
    complete_line cdb reso
    complete_line cdb resolve tin
    complete_line cdb tags --retry
    complete_line cdb snapshot ver
    CDB_SERVER=http://127.0.0.1:1 complete_line cdb resolve tin
    """
    environment = os.environ | {"CDB_SERVER": server, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (["resolve", "tiny", "--retry-for", "verify", ""], "")
