"""The entry points of the service: every link works, and browsers get a page and an icon."""

import re

import pytest
from django.core.management import call_command
from django.test import Client

from cdb_rest.http.security import PAGE_HEADERS, POLICY
from cdb_web.page import PAGE_POLICY
from tests.conftest import PREFIX

pytestmark = pytest.mark.django_db

# What Chromium sends.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("path", ["/", PREFIX, PREFIX.rstrip("/")])
def test_every_link_of_an_index_is_answered(api, world, path):
    index = api.get(path).ok()
    assert {"docs", "schema"} <= set(index)
    links = [link.format(gtName="run24", majorIOV=1, minorIOV=0) for link in index.values() if link != "cdb"]
    statuses = {link: Client().get(link).status_code for link in links}
    assert set(statuses.values()) == {200}, statuses


def test_the_index_of_the_api_has_a_lookup_that_finds_payloads(api, world):
    link = api.get(PREFIX).ok()["lookup"]
    [row] = api.get(link.format(gtName="run24", majorIOV=1, minorIOV=0)).ok()
    assert row[:2] == ["Gain", "early"]


@pytest.mark.django_db(transaction=True)
def test_a_browser_gets_a_page_whose_links_are_answered(db):
    call_command("seed_scenario", "tiny", verbosity=0)
    response = Client().get("/", headers={"Accept": BROWSER})
    assert response["Content-Type"] == "text/html; charset=utf-8" and response["Vary"] == "Accept"
    assert (PAGE_HEADERS | {POLICY: PAGE_POLICY}).items() <= dict(response.items()).items()
    page = response.content.decode()
    assert "<title>cdb" in page
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="(/.*?)"', page)]
    assert len(links) > 5
    statuses = {link: Client().get(link).status_code for link in links}
    assert set(statuses.values()) == {200}, statuses


def test_the_icon_is_an_icon_that_may_be_kept():
    response = Client().get("/favicon.ico")
    assert (response.status_code, response["Content-Type"]) == (200, "image/x-icon")
    assert response.content[:4] == b"\x00\x00\x01\x00"
    assert response["Cache-Control"] == "public, max-age=86400"
