"""The error table."""

from django.apps import apps

from cdb_rest.writes.driver_errors import CONSTRAINTS, NAME_CONSTRAINTS


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
