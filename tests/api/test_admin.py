"""Django's admin: it shows the changes of access rules and cannot change them, and it deactivates accounts."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from cdb_rest.models import AccessChange
from tests.api.helpers import grant

pytestmark = pytest.mark.django_db
LOG = "/admin/cdb_rest/accesschange/"


@pytest.fixture
def operator():
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def test_changes_of_rules_are_shown_and_cannot_be_changed(operator):
    grant(kind="user", subject="alice", role="manager")
    change = AccessChange.objects.get()
    for path in (LOG, f"{LOG}{change.id}/change/"):
        assert b"alice" in operator.get(path).content
    for path in (f"{LOG}add/", f"{LOG}{change.id}/delete/", f"{LOG}{change.id}/change/"):
        assert operator.post(path, {"actor": "another", "post": "yes"}).status_code == 403
    operator.post(LOG, {"action": "delete_selected", "_selected_action": change.id, "post": "yes"})
    assert AccessChange.objects.values("actor").get() == {"actor": change.actor}


def test_an_account_of_an_identity_provider_can_be_deactivated(operator):
    person = User.objects.create_user("exp:/CN=a b|c")
    path = f"/admin/auth/user/{person.id}/change/"
    page = operator.get(path)
    assert page.status_code == 200 and b"exp:/CN=a b|c" in page.content
    values = {"username": "another", "first_name": "", "last_name": "", "email": ""}
    times = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "last_login_0": "", "last_login_1": ""}
    saved = operator.post(path, values | times)
    assert saved.status_code == 302, saved.content
    person.refresh_from_db()
    assert (person.username, person.is_active) == ("exp:/CN=a b|c", False)
