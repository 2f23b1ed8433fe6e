"""What the pages say of payload lists that share the rows of another global tag."""

import re
from html import unescape

import pytest

from tests.api.helpers import insert

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shared(browser):
    """The sentences of a page, with the addresses of their links, which must exist."""

    def read(path):
        found = re.findall(r"<p>(Shares .*?)</p>", browser.get(path), re.DOTALL)
        for link in re.findall(r'href="([^"]*)"', "".join(found)):
            browser.get(unescape(link))
        return [
            " ".join(re.sub(r'<a href="([^"]*)">([^<]*)</a>', r"[\2](\1)", one).split()).replace(" .", ".")
            for one in found
        ]

    return read


@pytest.fixture
def copy(api, tag):
    """A clone of `tag`, which has lists of two types since its revision 3; a later change of the tag changed no list."""
    api.post("pt", {"name": "Noise"}).ok()
    insert(api, "noise", [1, 0], "Noise")
    api.put("gt_change_status/tag/locked").ok()
    assert api.get("globalTag/tag?light").headers["CDB-Revision"] == "4"
    api.post("cloneGlobalTag/tag/copy").ok()


def change(api, tag, payload_type="Gain"):
    row = {"global_tag": tag, "payload_type": payload_type, "checksum": "c", "since": [7, 0], "until": "open"}
    api.post("payload-iovs/insert", row | {"payload_url": f"{tag} changed"}).ok()


def test_a_clone_shares_the_lists_that_were_not_written_to(shared, browser, api, copy):
    at_3 = "[tag, revision 3](/tags/tag?rev=3)."
    assert shared("/tags/tag") == [] == shared("/tags/tag/lists/Gain")
    assert shared("/tags/copy") == [f"Shares 2 of 2 payload lists with {at_3}"]
    assert shared("/tags/copy/lists/Noise") == [f"Shares its rows with {at_3}"]
    names = api.get("gtPayloadLists/copy").json
    change(api, "copy")
    page = browser.get("/tags/copy")
    assert f"<td>{names['Gain']}</td>" in page and re.search(
        rf"<td>{names['Noise']} <span[^>]*>shared</span></td>", page
    )
    api.put("gt_change_status/tag/unlocked").ok()
    change(api, "tag", "Noise")
    # The clone of a clone names the tag that has the rows.
    api.post("cloneGlobalTag/copy/again").ok()
    assert shared("/tags/copy") == [f"Shares 1 of 2 payload lists with {at_3}"]
    assert shared("/tags/copy/lists/Gain") == []
    assert shared("/tags/copy?rev=1") == [f"Shares 2 of 2 payload lists with {at_3}"]
    assert shared("/tags/copy/lists/Gain?rev=1") == [f"Shares its rows with {at_3}"]
    assert shared("/tags/again") == [
        "Shares 1 of 2 payload lists with [copy, revision 2](/tags/copy?rev=2).",
        f"Shares 1 of 2 payload lists with {at_3}",
    ]


def test_lists_of_several_states_of_a_tag_are_told_apart(shared, api, copy):
    api.put("gt_change_status/tag/unlocked").ok()
    change(api, "tag")
    api.post("cloneGlobalTag/tag/later").ok()
    assert shared("/tags/later") == ["Shares 2 of 2 payload lists with [tag, revision 6](/tags/tag?rev=6)."]
    # The list of the earlier state takes the place of the later one.
    lists = {tag: api.get(f"gtPayloadLists/{tag}").json["Gain"] for tag in ("copy", "later")}
    api.put("pl_attach", {"global_tag": "later", "payload_list": lists["copy"]}).ok()
    at_2, at_3, at_7 = (f"with [tag, revision {rev}](/tags/tag?rev={rev})." for rev in (2, 3, 7))
    # The other list was the same in that state.
    assert shared("/tags/later") == [f"Shares 2 of 2 payload lists {at_3}"]
    change(api, "tag", "Noise")
    api.post("cloneGlobalTag/tag/last").ok()
    api.put("pl_attach", {"global_tag": "last", "payload_list": lists["copy"]}).ok()
    assert shared("/tags/last") == [f"Shares 1 of 2 payload lists {at}" for at in (at_7, at_2)]


def test_the_base_may_have_moved_to_another_tag_and_both_may_be_deleted(shared, api, build, copy):
    build.tag("other")
    api.put("gt_change_status/tag/unlocked").ok()
    api.put("pl_attach", {"global_tag": "other", "payload_list": api.get("gtPayloadLists/tag").json["Gain"]}).ok()
    # The other tag has the list in the same version.
    both = [
        "Shares 1 of 2 payload lists with [other, revision 1](/tags/other?rev=1).",
        "Shares 1 of 2 payload lists with [tag, revision 3](/tags/tag?rev=3).",
    ]
    assert shared("/tags/copy") == both
    api.delete("deleteGlobalTag/tag").ok()
    assert shared("/tags/copy") == [
        both[0],
        "Shares 1 of 2 payload lists with [tag, revision 3](/tags/tag/history) (deleted).",
    ]
