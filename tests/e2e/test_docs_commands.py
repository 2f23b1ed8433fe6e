"""Commands of the documentation, pasted into a shell without changes."""

import json
import re
import subprocess

from cdb.env import ROOT
from tests.e2e.service import JobClient
from tests.programs import needs


def commands(page, heading):
    """The shell commands below a heading, up to the next one of any level."""
    section = (ROOT / "docs" / page).read_text().split(f"{heading}\n", 1)[1]
    section = re.split(r"\n#{2,} ", section)[0]
    found = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found, f"no commands below {heading} in {page}"
    return found


def paste(service, text, tmp_path):
    """Run commands in the project's directory, whatever they write goes elsewhere. Returns what they print."""
    environment = service.environment | {"CDB_URL": f"http://127.0.0.1:{service.port}"}
    text = text.replace("export CDB_URL=http://127.0.0.1:8000\n", "").replace("var/", f"{service.data}/")
    text = text.replace("curl --fail -O", f"curl --fail --output-dir {tmp_path} -O").replace(
        "mine.csv", f"{tmp_path}/mine.csv"
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (text, done.stdout, done.stderr)
    return done.stdout


@needs("curl")
def test_the_examples_of_the_api(fresh, tmp_path):
    service = fresh().start()
    for heading in ("# The REST API", "## From an empty tag to an answer", "### Inserting in one call", "## Exporting"):
        for text in commands("api.md", heading):
            printed = paste(service, text, tmp_path)
            assert '"code"' not in printed, printed
    assert JobClient(service.port).get("globalTag/mine?light")["status"] == "locked"
    [file] = tmp_path.iterdir()
    assert file.read_text().startswith("payload_type,payload_url,")
    paste(service, commands("web-pages.md", "### Export and import a tag")[0], tmp_path)
    assert JobClient(service.port).get("globalTag/restored?light")["payload_iov_count"] == 1


@needs("curl")
def test_the_ten_questions_have_the_answers_that_the_guide_shows(fresh, tmp_path):
    service = fresh().start()
    text = (ROOT / "docs" / "ten-questions.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```(?:\n\n```json\n(.*?)```)?", text, re.DOTALL)
    assert len(blocks) == 12
    for command, expected in blocks:
        printed = paste(service, command, tmp_path)
        if expected:
            # A command of manage.py prints a line after the response.
            answer, _ = json.JSONDecoder().raw_decode(printed)
            assert is_part(json.loads(expected), answer), answer


def is_part(shown, answer):
    """Whether a page shows an answer as it is. It may leave out elements of arrays of arrays, and times are others."""
    if isinstance(shown, dict):
        return shown.keys() == answer.keys() and all(key == "time" or is_part(shown[key], answer[key]) for key in shown)
    if isinstance(shown, list) and shown and isinstance(shown[0], list):
        return all(one in answer for one in shown)
    if isinstance(shown, list):
        return len(shown) == len(answer) and all(map(is_part, shown, answer))
    return bool(shown == answer)


# Members whose values differ from one database to the next.
CHANGING = {"id", "created", "updated", "payload_list"}


def without_changing(value):
    if isinstance(value, dict):
        return {name: without_changing(one) for name, one in value.items() if name not in CHANGING}
    return [without_changing(one) for one in value] if isinstance(value, list) else value


@needs("curl")
def test_each_command_of_the_tutorial_prints_what_the_page_shows(fresh, tmp_path):
    service = fresh().start()
    page = (ROOT / "docs" / "tutorial.md").read_text()
    # A command with its output. The first two have none: they start the service and set its address.
    steps = re.findall(r"```sh\n((?:(?!```).)*)```\n\n```(json|text)\n(.*?)```", page, re.DOTALL)
    assert len(steps) + 2 == page.count("```sh\n") and "export CDB_URL=http://127.0.0.1:8000\n" in page
    for command, kind, shown in steps:
        printed = paste(service, command, tmp_path)
        if kind == "json":
            assert without_changing(json.loads(printed)) == without_changing(json.loads(shown)), command
        else:
            # The page has no spaces at the ends of lines.
            assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines(), command
