"""The error table."""

import inspect
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import InterfaceError, OperationalError

from cdb_rest.rules import errors
from cdb_rest.writes.driver_errors import CONSTRAINTS, NAME_CONSTRAINTS, translate


def classes():
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.CdbError)]


def test_every_error_has_a_status_a_code_of_its_own_and_a_meaning():
    concrete = [one for one in classes() if one is not errors.CdbError]
    assert len({one.code for one in concrete}) == len(concrete)
    assert all(one.__doc__ for one in concrete)
    assert {one.status for one in concrete} <= {400, 401, 403, 404, 409, 410, 413, 429, 504}


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


def driver_error(wrapper, code=None, constraint=None):
    """An error as Django raises it, around one of the driver."""
    error = wrapper("what the driver said")
    error.__cause__ = DriverError(code, constraint)
    return error


class DriverError(Exception):
    def __init__(self, code, constraint):
        self.pgcode = code
        self.diag = SimpleNamespace(constraint_name=constraint)


@pytest.mark.parametrize(
    ("wrapper", "code"),
    [
        (OperationalError, None),
        (InterfaceError, None),
        (OperationalError, "57014"),
        (OperationalError, "57P01"),
        (OperationalError, "55P03"),
    ],
)
def test_an_unavailable_database_is_said_to_the_caller_and_its_reason_to_the_log(wrapper, code, caplog):
    translated = translate(driver_error(wrapper, code))
    assert isinstance(translated, errors.DatabaseUnavailableError)
    assert "what the driver said" in caplog.text and "driver" not in str(translated)
