"""The error table."""

import inspect

from cdb_rest.api.errors import STATUS_OF
from cdb_rest.domain import errors
from cdb_rest.models import GlobalTag, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType
from cdb_rest.services.driver_errors import CONSTRAINTS, NAME_CONSTRAINTS


def classes():
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.CdbError)]


def test_every_error_has_a_status_a_code_of_its_own_and_a_meaning():
    concrete = [one for one in classes() if one is not errors.CdbError]
    assert set(STATUS_OF) == set(concrete)
    assert len({one.code for one in concrete}) == len(concrete)
    assert all(one.__doc__ for one in concrete)
    assert set(STATUS_OF.values()) <= {400, 404, 409, 413, 504}


def test_every_constraint_has_an_error():
    models = (GlobalTag, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType)
    declared = {constraint.name for model in models for constraint in model._meta.constraints}
    assert declared == set(CONSTRAINTS) | set(NAME_CONSTRAINTS)
