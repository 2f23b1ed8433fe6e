"""The error table."""

import inspect

from django.apps import apps

from cdb_rest.rules import errors
from cdb_rest.writes.driver_errors import CONSTRAINTS, NAME_CONSTRAINTS


def classes():
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.CdbError)]


def test_every_error_has_a_status_a_code_of_its_own_and_a_meaning():
    concrete = [one for one in classes() if one is not errors.CdbError]
    assert len({one.code for one in concrete}) == len(concrete)
    assert all(one.__doc__ for one in concrete)
    assert {one.status for one in concrete} <= {400, 401, 403, 404, 405, 409, 410, 413, 429, 504}


def test_every_constraint_has_an_error():
    declared = {
        constraint.name
        for model in apps.get_app_config("cdb_rest").get_models()
        for constraint in model._meta.constraints
    }
    # No input can violate these.
    bugs = {
        "payload_iov_history_node",
        "payload_iov_history_not_empty",
        "payload_list_base",
        "payload_list_version_base",
    }
    # Reversions insert rows with given ids.
    keys = {"PayloadIOV_pkey"}
    assert (declared - bugs) | keys == set(CONSTRAINTS) | set(NAME_CONSTRAINTS)
