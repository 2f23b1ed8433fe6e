"""Browse mode: pages, search, sorting and filters on the list routes."""

import itertools

import pytest

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(build):
    tags = [
        build.tag(name, status) for name, status in [("b-tag", "locked"), ("a-tag", "unlocked"), ("C-TAG", "unlocked")]
    ]
    lists = [build.list(tag, kind) for tag in tags[:2] for kind in ("Gain", "Noise")]
    lists.append(build.list(None, "Gain"))
    for number, payload_list in enumerate(lists):
        for start in range(number):
            build.iov(payload_list, (start, 0), url=f"url{number}.{start}")
    build.iov(None, (0, 0), url="loose")
    return lists


def names(answer, key="name"):
    return [row[key] for row in answer.ok()["results"]]


def test_pages_part_the_rows(api, world):
    pages = [names(api.get(f"piov?page={page}&page_size=4"), "payload_url") for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [4, 4, 3, 0]
    assert len({url for page in pages for url in page}) == 11
    assert api.get("piov?page=1&page_size=4").ok()["total_pages"] == 3


def test_without_page_filters_are_refused_with_a_hint(api, world):
    parameters = ("search=zzz", "status=locked", "status=", "sort=name", "order=desc", "page_size=1")
    for path, parameter in itertools.product(("globalTags", "global-tags", "gt"), parameters):
        error = api.get(f"{path}?{parameter}").error(400, "invalid_input")
        assert "add page=1" in error[parameter.partition("=")[0]][0]
        api.get(f"{path}?page=1&{parameter}").ok()
    others = ("pt?search=Gain", "payload-types?order=desc", "pl?global_tag=a-tag", "payload-lists?payload_type=Gain")
    of_iovs = ("piov?payload_list=Gain_1", "payload-iovs?global_tag=a-tag&payload_type=Gain&sort=size")
    for path in (*others, *of_iovs):
        assert "add page=1" in api.get(path).error(400, "invalid_input")["detail"]
        api.get(f"{path}&page=1").ok()


def test_without_page_other_unknown_parameters_are_ignored(api, world):
    assert len(api.get("globalTags?payload_list=x&filter=y").ok()) == 3


def test_filters(api, world):
    assert names(api.get("globalTags?page=1&status=locked")) == ["b-tag"]
    assert names(api.get("globalTags?page=1&status=nonsense")) == []
    assert names(api.get("pl?page=1&global_tag=a-tag"), "payload_type") == ["Gain", "Noise"]
    assert names(api.get("pl?page=1&payload_type=Gain&sort=id"), "global_tag") == ["b-tag", "a-tag", None]
    assert names(api.get("pl?page=1&sort=iov_count&order=desc"), "iov_count") == [4, 3, 2, 1, 0]


def test_browsed_lists_carry_their_count_instead_of_their_iovs(api, world):
    row = api.get("pl?page=1").ok()["results"][1]
    assert list(row) == ["id", "name", "global_tag", "payload_type", "created", "iov_count"]
