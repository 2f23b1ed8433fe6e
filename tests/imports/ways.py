"""The ways in which a file comes into a global tag. All have the same outcome."""

import io
import re
import tempfile
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from cdb_rest.models import PayloadIOV
from cdb_rest.rules.moment import OPEN
from tests.conftest import Api


class Outcome(NamedTuple):
    """What becomes of a file for the tag `tag`.

    `kind` is stored, unchanged, or the code of the error; `lines` are those that the error or the warnings name, and `warnings`
    the kinds of these.
    """

    kind: str
    lines: list[int]
    warnings: set[str]


def by_command(content: bytes) -> Outcome:
    """The outcome for `manage.py import_iovs`: first with --dry-run, then without --confirm."""
    try:
        said = command(content, "--dry-run")
    except CommandError as error:
        return Outcome(error.__cause__.code, _lines(str(error)), set())
    lines = re.findall(r"^Warning .* Lines: ([\d, ]+)", said, re.MULTILINE)
    found = sorted({int(number) for text in lines for number in text.split(", ") if number.strip()})
    warnings = set(re.findall(r"^Warning \((\w+)\)", said, re.MULTILINE))
    try:
        said = command(content)
    except CommandError as error:
        return Outcome(error.__cause__.code, found, warnings)
    return Outcome("unchanged" if "Imported 0 IOVs" in said else "stored", found, warnings)


def by_api(content: bytes) -> Outcome:
    """The outcome for `POST global-tags/tag/import`."""
    previewed = post(content, "dry_run=1")
    if previewed.status != 200:
        return Outcome(previewed.json["code"], _lines_of(previewed.json), set())
    found = previewed.json["warnings"]
    lines = sorted({number for warning in found for number in warning["rows"]})
    kinds = {warning["kind"] for warning in found}
    stored = post(content)
    if stored.status != 200:
        return Outcome(stored.json["code"], lines, kinds)
    return Outcome("unchanged" if stored.json["unchanged"] else "stored", lines, kinds)


def by_page(content: bytes, **ticked: str) -> Outcome:
    """The outcome for the page of insertions, where no box is ticked but those that are given."""
    client, path = Client(headers={"Accept": "text/html"}), "/tags/tag/insert"
    page = client.post(path, {"kind": "file", "file": SimpleUploadedFile("rows", content)} | ticked).content.decode()
    if refusal := re.search(r'class="problem" data-code="(\w+)".*?</div>', page, re.DOTALL):
        lines = re.findall(r'<td class="number">(\d+)</td>', refusal[0])
        return Outcome(refusal[1], [int(number) for number in lines] or _lines(refusal[0]), set())
    warnings = dict(re.findall(r'<li data-kind="(\w+)">(.*?)</li>', page))
    lines = sorted(
        {int(number) for text in warnings.values() for number in re.findall(r"(?<=[es,] )\d+(?=[,<])", text)}
    )
    if "No change." in page:
        return Outcome("unchanged", lines, set(warnings))
    text = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    hidden = dict(re.findall(r'name="(planned|previewed)" value="(\w+)"', page))
    answer = client.post(path, {"kind": "file", "text": unescape(text[1])} | hidden | ticked)
    code = re.search(r'data-code="(\w+)"', answer.content.decode())
    return Outcome(code[1] if code else "stored", lines, set(warnings))


WAYS = (by_command, by_api, by_page)


def command(content: bytes, *arguments: str) -> str:
    """What `import_iovs` prints. Raises its `CommandError`."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "file.csv"
        file.write_bytes(content)
        out = io.StringIO()
        call_command("import_iovs", str(file), "--global-tag=tag", *arguments, stdout=out)
        return out.getvalue()


def post(content: bytes, query: str = "", **headers: str) -> Any:
    """The answer to a file."""
    return Api()("POST", f"global-tags/tag/import?{query}", raw=content, content_type="text/csv", **headers)


def valid() -> str:
    """The rows of all tags as text, such as a1-O b5-6: payload, start, and end or O for open."""
    columns = ("payload_url", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
    found = PayloadIOV.objects.filter(payload_list__isnull=False).order_by("comb_iov").values_list(*columns)
    return " ".join(
        f"{url}{_shown(since)}-{_shown(until)}" for url, *moments in found for since, until in [_pairs(moments)]
    )


def rows(*texts: str) -> bytes:
    """A file of rows such as "a,1,9": payload, start, end."""
    lines = ["payload_type,payload_url,since,until"]
    for text in texts:
        url, since, until = text.split(",")
        end = f'"{until},0"' if until.isdecimal() else until
        lines.append(f'Gain,{url},"{since},0",{end}')
    return "".join(f"{line}\n" for line in lines).encode()


def _pairs(moments: list[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    return (moments[0], moments[1]), (moments[2], moments[3])


def _shown(moment: tuple[int, int]) -> str:
    major, minor = moment
    return "O" if moment == (OPEN, OPEN) else f"{major}.{minor}" if minor else f"{major}"


def _lines(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"Line (\d+):", text)]


def _lines_of(error: dict[str, Any]) -> list[int]:
    return [row["row"] + 1 for row in error.get("rows", [])] or _lines(error["detail"])
