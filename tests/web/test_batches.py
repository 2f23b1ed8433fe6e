"""Results in batches: together, they are the same as at once. And the first rows of a change."""

import re
from html import unescape

import pytest

from cdb_web import batches

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tags(build):
    """The tags `old` and `new`, which differ in some payload types, and have gaps in others."""
    for name in ("old", "new"):
        made = build.tag(name)
        for number, payload_type in enumerate(("Align", "Gain", "Noise", "Pede stal", "Time")):
            rows = build.list(made, payload_type)
            build.iov(rows, (1, 0), (4, 0), url="a")
            if number % 2:
                build.iov(rows, (5, 0), (9, 0), url=f"{name}{number}" if number == 3 else "b")
            else:
                build.iov(rows, (4, 0), (9, 0), url=f"{name}{number}")


def rows_of(page):
    """The texts of the rows of the table, without those that say how many payload types there are."""
    rows = re.findall(r"<tr>(?!<td colspan=)(.*?)</tr>", page.split("</thead>")[-1], re.DOTALL)
    texts = [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)).strip() for row in rows]
    return [text for text in texts if "without gaps" not in text]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tags/new/coverage?since=1,0&until=9,0&required=Gain,Else", ["Gain", "Pede stal", "Else"]),
        ("/compare?a=old&b=new", ["Align", "Noise", "Pede stal", "Time"]),
    ],
)
@pytest.mark.parametrize("with_script", [False, True])
def test_batches_of_a_page_are_its_rows(browser, tags, monkeypatch, path, expected, with_script):
    whole = browser.get(path)
    assert [row.startswith(name) for row, name in zip(rows_of(whole), expected, strict=True)]
    assert "Continue after" not in whole and "payload types are" not in whole
    monkeypatch.setattr(batches, "BATCH_ROWS", 1)
    found, page = [], browser.get(path)
    steps = 1
    while more := re.search(r'(?:hx-get|<a href)="([^"]*after=[^"]*)"', page):
        assert "of 5 payload types" in page
        found += rows_of(page)
        target = path.split("?")[0] + unescape(more[1])
        headers = {"HX-Request": "true"} if with_script else {}
        page = browser.get(target, **headers)
        assert ("<html" in page) != with_script
        steps += 1
    assert found + rows_of(page) == rows_of(whole) and steps > 2
    assert re.search(r"All \d payload types are", page)
