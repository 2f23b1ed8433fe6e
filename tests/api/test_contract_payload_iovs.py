"""The routes of payload types, lists and IOVs, as existing clients know them: shapes and status codes."""

import pytest

from cdb_rest.models import PayloadIOV
from cdb_rest.rules.moment import OPEN
from tests.api.helpers import CUTS, IOV, LIST, NAMED, NESTED_LIST, keys

pytestmark = pytest.mark.django_db
parametrize = pytest.mark.parametrize


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["piov", "payload-iovs"])
def test_create_payload_iov(api, path):
    body = {"payload_url": "file", "checksum": "abc", "major_iov": 1, "minor_iov": 2}
    iov = api.post(path, body).ok()
    assert keys(iov) == IOV
    assert iov["comb_iov"] == "1.0000000000000000002"
    assert (iov["major_iov_end"], iov["minor_iov_end"], iov["payload_list"]) == (OPEN, OPEN, None)
    assert (iov["size"], iov["revision"]) == (0, None)
    full = body | {"major_iov_end": 5, "minor_iov_end": 0, "size": 7, "revision": 12}
    iov = api.post(path, full).ok()
    assert (iov["major_iov_end"], iov["minor_iov_end"], iov["size"], iov["revision"]) == (5, 0, 7, "12")
    assert api.get(path).ok()[-1] == iov


@parametrize("path", ["piov/{}", "payload-iovs/{}"])
def test_payload_iov_by_id(api, world, path):
    known = PayloadIOV.objects.get(payload_url="early")
    iov = api.get(path.format(known.id)).ok()
    assert keys(iov) == IOV
    assert (iov["payload_list"], iov["revision"]) == (world["gain"].name, "3")
    api.get(path.format(10**9)).error(404, "payload_iov_not_found")
    api.get(path.format("abc")).error(400, "invalid_input")


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["bulk_piov", "payload-iovs/bulk"])
def test_bulk_insert(api, world, path):
    row = {"payload_url": "b", "payload_list": world["detached"].name, "minor_iov": 0}
    rows = [
        row | {"major_iov": 1, "checksum": "x", "size": 9, "revision": "4", "major_iov_end": 2, "minor_iov_end": 0},
        row | {"major_iov": 2},
    ]
    assert api.post(path, rows).ok()["count"] == 2
    iovs = api.get(f"pl/{world['detached'].id}").ok()["payload_iov"]
    assert [
        (iov["major_iov"], iov["major_iov_end"], iov["checksum"], iov["size"], iov["revision"]) for iov in iovs
    ] == [
        (1, 2, "x", 9, "4"),
        (2, OPEN, "", 0, None),
    ]
    assert api.post(path, []).ok()["count"] == 0


def test_bulk_is_all_or_nothing_and_names_the_wrong_rows(api, world):
    row = {"payload_url": "b", "payload_list": world["detached"].name, "major_iov": 1, "minor_iov": 0}
    wrong = [row, row | {"major_iov": -1}, 5, row | {"major_iov": 3, "size": "big"}]
    error = api.post("bulk_piov", wrong).error(400, "invalid_input")
    assert [problem["row"] for problem in error["rows"]] == [1, 2, 3]
    error = api.post("bulk_piov", [row, row | {"major_iov": 2}, row]).error(400, "invalid_input")
    assert error["rows"][0]["row"] == 2
    api.post("bulk_piov", [row, row | {"payload_list": "nothing"}]).error(404, "payload_list_not_found")
    taken = row | {"payload_list": world["gain"].name, "major_iov": 10}
    assert "Row 1" in api.post("bulk_piov", [row, taken]).error(409, "iov_overlap")["detail"]
    bounded = taken | {"major_iov": 0, "major_iov_end": 6, "minor_iov_end": 0}
    error = api.post("bulk_piov", [row, bounded, taken]).error(409, "iov_overlap")
    assert [problem["row"] for problem in error["rows"]] == [1, 2]
    assert "Row 1" in error["detail"] and "2 more" not in error["detail"]
    wrong = [
        taken,
        row | {"payload_list": "nothing"},
        row,
        row,
        row | {"major_iov": 5, "major_iov_end": 4, "minor_iov_end": 0},
    ]
    error = api.post("bulk_piov", wrong).error(409, "iov_overlap")
    assert [(problem["row"], problem["code"]) for problem in error["rows"]] == [
        (0, "iov_overlap"),
        (1, "payload_list_not_found"),
        (3, "invalid_input"),
        (4, "invalid_input"),
    ]
    strangers = [row | {"payload_list": name} for name in ("nothing", "missing")]
    error = api.post("bulk_piov", [row, *strangers]).error(404, "payload_list_not_found")
    assert [(problem["row"], problem["code"]) for problem in error["rows"]] == [
        (1, "payload_list_not_found"),
        (2, "payload_list_not_found"),
    ]
    assert api.get(f"payload-lists/by-name/{world['detached'].name}").ok()["iov_count"] == 0


@parametrize("path", ["piov_attach", "payload-iovs/attach"])
def test_attach_payload_iov(api, world, path):
    iov = PayloadIOV.objects.get(payload_url="loose")
    body = {"payload_list": world["detached"].name, "piov_id": iov.id}
    attached = api.put(path, body).ok()
    assert keys(attached) == [*IOV, *CUTS, "unchanged"]
    assert attached["payload_list"] == world["detached"].name
    assert [attached[name] for name in CUTS] == [[]] * 4
    assert attached["unchanged"] is False
    assert api.put(path, body).ok() == attached | {"unchanged": True}
    api.put(path, body | {"payload_list": "nothing"}).error(404, "payload_list_not_found")
    api.put(path, body | {"piov_id": 10**9}).error(404, "payload_iov_not_found")


@pytest.mark.django_db(transaction=True)
def test_attaching_where_others_are_valid_follows_the_interval_rule(api, world):
    iov = PayloadIOV.objects.get(payload_url="loose")
    attached = api.put("piov_attach", {"payload_list": world["gain"].name, "piov_id": iov.id}).ok()
    [trimmed], [detached] = attached["trimmed"], attached["detached"]
    assert (trimmed["payload_url"], trimmed["before"]["until"], trimmed["after"][0]["until"]) == (
        "early",
        [10, 0],
        [5, 5],
    )
    assert (detached["payload_url"], detached["before"], detached["after"]) == (
        "late",
        {"since": [10, 0], "until": "open"},
        [],
    )
    assert attached["moved"] == attached["split"] == []
    iovs = api.get(f"pl/{world['gain'].id}").ok()["payload_iov"]
    assert [(one["payload_url"], one["major_iov_end"], one["minor_iov_end"]) for one in iovs] == [
        ("early", 5, 5),
        ("loose", OPEN, OPEN),
    ]
    assert api.get(f"piov/{PayloadIOV.objects.get(payload_url='late').id}").ok()["payload_list"] is None


@parametrize("path", ["deletePayloadIOV/run24/Gain/{}", "payload-iovs/run24/Gain/{}/delete"])
def test_delete_payload_iov_by_exact_start_and_end(api, world, path):
    for unlike in ["0/0", "0/0/10/1", "0/1/10/0", "10/0/11/0"]:
        api.delete(path.format(unlike)).error(404, "payload_iov_not_found")
    assert keys(api.delete(path.format("0/0/10/0")).ok()) == ["detail"]
    assert keys(api.delete(path.format("10/0")).ok()) == ["detail"]
    assert api.get("globalTag/run24?light").ok()["payload_iov_count"] == 0
    api.delete(path.format("x/0")).error(400, "invalid_input")
    api.delete(path.format(f"{2**63}/0")).error(400, "invalid_input")
    api.delete("deletePayloadIOV/missing/Gain/0/0").error(404, "payload_list_not_found")


@parametrize("path", ["pt", "payload-types"])
def test_payload_types(api, path):
    created = api.post(path, {"name": "Gain", "description": "of the calorimeter"}).ok()
    assert keys(created) == NAMED
    assert api.get(path).ok() == [created]


@parametrize("path", ["deletePayloadType/{}", "payload-types/{}/delete"])
def test_delete_payload_type(api, world, path):
    api.delete(path.format("Gain")).error(409, "payload_type_in_use")
    api.post("pt", {"name": "Unused"}).ok()
    assert keys(api.delete(path.format("Unused")).ok()) == ["detail"]
    api.delete(path.format("Unused")).error(404, "payload_type_not_found")


@parametrize("path", ["pl", "payload-lists"])
def test_create_payload_list(api, path):
    api.post("pt", {"name": "Gain"}).ok()
    made = api.post(path, {"payload_type": "Gain"}).ok()
    assert keys(made) == LIST
    assert made["name"] == f"Gain_{made['id']}"
    assert made["global_tag"] is None and made["payload_type"] == "Gain"
    api.post(path, {"payload_type": "Unknown"}).error(404, "payload_type_not_found")


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["pl", "payload-lists"])
def test_nested_payload_lists(api, world, path):
    lists = api.get(path).ok()
    assert all(keys(one) == NESTED_LIST for one in lists)
    assert [(one["global_tag"], len(one["payload_iov"])) for one in lists] == [("run24", 2), ("run24", 0), (None, 0)]


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["pl/{}", "payload-lists/{}"])
def test_nested_payload_list_by_id(api, world, path):
    one = api.get(path.format(world["gain"].id)).ok()
    assert keys(one) == NESTED_LIST
    assert [iov["payload_url"] for iov in one["payload_iov"]] == ["early", "late"]
    api.get(path.format(10**9)).error(404, "payload_list_not_found")
    api.get(path.format(2**63)).error(400, "invalid_input")
    api.get(path.format("abc")).error(400, "invalid_input")


def test_payload_list_by_name(api, world):
    one = api.get(f"payload-lists/by-name/{world['gain'].name}").ok()
    assert keys(one) == [*LIST, "iov_count"]
    assert one["iov_count"] == 2
    api.get("payload-lists/by-name/nothing").error(404, "payload_list_not_found")
    # Unknown parameters are members of the error, but never replace its code and its detail.
    refused = api.get("payload-lists/by-name/nothing?code=1&detail=2&other=3").error(400, "unknown_parameter")
    assert isinstance(refused["other"], list)


@pytest.mark.django_db(transaction=True)
@parametrize("path", ["pl_attach", "payload-lists/attach"])
def test_attach_payload_list_in_place_of_the_old_one(api, world, path):
    body = {"global_tag": "run24", "payload_list": world["detached"].name}
    attached = api.put(path, body).ok()
    assert keys(attached) == LIST
    assert (attached["global_tag"], attached["payload_type"]) == ("run24", "Gain")
    assert api.get("gtPayloadLists/run24").ok()["Gain"] == world["detached"].name
    assert api.get(f"pl/{world['gain'].id}").ok()["global_tag"] is None
    assert api.put(path, body).ok() == attached
    api.put(path, body | {"global_tag": "missing"}).error(404, "global_tag_not_found")
    api.put(path, body | {"payload_list": "nothing"}).error(404, "payload_list_not_found")


@parametrize("path", ["deletePayloadList/{}", "payload-lists/{}/delete"])
def test_delete_payload_list(api, world, path):
    api.delete(path.format(world["gain"].name)).error(409, "payload_list_not_empty")
    assert keys(api.delete(path.format(world["detached"].name)).ok()) == ["detail"]
    api.delete(path.format(world["detached"].name)).error(404, "payload_list_not_found")
