"""The search of the header, and the similar names of pages that are not found."""

import re
from html import unescape

import pytest

from cdb_rest.models import GlobalTag, PayloadType
from tests.api.helpers import body

pytestmark = pytest.mark.django_db(transaction=True)


def test_everything_is_found_by_a_part_of_its_text(browser, api, tag):
    GlobalTag.objects.update(description="The autumn of Gain", author="Ann Needle")
    PayloadType.objects.create(name="Needle_Type")
    api.post("payload-iovs/insert", body(payload_url="a/first_needle.root", comment="lost a needle")).ok()
    page = unescape(browser.get("/find?q=NEEDLE"))
    assert re.search(r'<a href="/tags/tag">tag</a>.*by Ann Needle', page) and "Needle_Type" in page
    assert '<a href="/tags/tag/history/' in page and "lost a needle" in page
    assert '<input type="search" id="find" name="q" value="NEEDLE"' in page
    assert re.search(r"127\.0\.0\.1(</a>)?: \d+ change", browser.get("/find?q=127.0"))
    assert "No global tag, payload type, person or comment" in browser.get("/find?q=nothing_here")
    assert "by any part of their text" in browser.get("/find")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t_needle.ro", ["a/first_needle.root"]),
        ("T_NEEDLE", ["a/first_needle.root"]),
        ("ab1", ["a/100%.root", "a/first_needle.root"]),
        ("%", []),
        ("00%.", ["a/100%.root"]),
        ("t_needl_", []),
        ("gone", ["gone.root"]),
        ("no such file", []),
    ],
)
def test_payload_files_are_found_by_a_part_of_url_or_checksum_also_those_of_the_past(browser, api, tag, text, found):
    for since, url in ((5, "gone.root"), (5, "a/first_needle.root"), (7, "a/100%.root")):
        checksum = "xyz" if url == "gone.root" else "ab12"
        api.post("payload-iovs/insert", body(payload_url=url, checksum=checksum, since=[since, 0])).ok()
    page = browser.get("/find/files?" + f"q={text}".replace("%", "%25"), **{"HX-Request": "true"})
    assert re.findall("<code>(.*?)</code></a>", page) == found and "<html" not in page
    assert ("<td>in the past</td>" in page) == (found == ["gone.root"])
    for link in re.findall('href="(/payloads[^"]*)"', page):
        assert "<tbody>" in browser.get(unescape(link)) and "No payload list" not in browser.get(unescape(link))


def test_a_page_that_is_not_found_offers_similar_names_and_the_search(browser, build):
    for name in ("run2024", "run2025", "other"):
        build.tag(name)
    page = browser.get("/tags/run2023", 404)
    assert set(re.findall('<li><a href="/tags/(run[^"]*)"', page)) == {"run2024", "run2025"}
    assert '<a href="/find?q=run2023">' in page
