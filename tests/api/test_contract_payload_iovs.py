"""The routes of payload lists and IOVs, as existing clients know them; test_nopayloaddb.py has more."""

import pytest

from cdb_rest.models import PayloadIOV
from tests.api.helpers import IOV, keys

pytestmark = pytest.mark.django_db
parametrize = pytest.mark.parametrize


@parametrize("path", ["piov/{}", "payload-iovs/{}"])
def test_payload_iov_by_id(api, world, path):
    known = PayloadIOV.objects.get(payload_url="early")
    iov = api.get(path.format(known.id)).ok()
    assert keys(iov) == IOV
    assert (iov["payload_list"], iov["revision"]) == (world["gain"].name, "3")
    api.get(path.format(10**9)).error(404, "payload_iov_not_found")


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
    empty = row | {"major_iov": 5, "major_iov_end": 4, "minor_iov_end": 0}
    wrong = [taken, row | {"payload_list": "nothing"}, row, row, empty]
    error = api.post("bulk_piov", wrong).error(409, "iov_overlap")
    assert [(problem["row"], problem["code"]) for problem in error["rows"]] == [
        (0, "iov_overlap"),
        (1, "payload_list_not_found"),
        (3, "invalid_input"),
        (4, "invalid_input"),
    ]
    assert api.get(f"payload-lists/by-name/{world['detached'].name}").ok()["iov_count"] == 0


@parametrize("path", ["deletePayloadIOV/run24/Gain/{}", "payload-iovs/run24/Gain/{}/delete"])
def test_delete_payload_iov_by_exact_start_and_end(api, world, path):
    for unlike in ["0/0", "0/0/10/1", "0/1/10/0", "10/0/11/0"]:
        api.delete(path.format(unlike)).error(404, "payload_iov_not_found")
    assert keys(api.delete(path.format("0/0/10/0")).ok()) == ["detail"]
    assert keys(api.delete(path.format("10/0")).ok()) == ["detail"]
    assert api.get("globalTag/run24?light").ok()["payload_iov_count"] == 0
    api.delete(path.format(f"{2**63}/0")).error(400, "invalid_input")
    api.delete("deletePayloadIOV/missing/Gain/0/0").error(404, "payload_list_not_found")


def test_payload_list_by_name(api, world):
    assert api.get(f"payload-lists/by-name/{world['gain'].name}").ok()["iov_count"] == 2
    api.get("payload-lists/by-name/nothing").error(404, "payload_list_not_found")
    # Unknown parameters are members of the error, but never replace its code and its detail.
    refused = api.get("payload-lists/by-name/nothing?code=1&detail=2&other=3").error(400, "unknown_parameter")
    assert isinstance(refused["other"], list)
