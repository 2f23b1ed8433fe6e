"""Django's admin: it shows the change log and cannot change it, and it deactivates accounts."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from cdb_rest.models import GlobalTagChange

pytestmark = pytest.mark.django_db
LOG = "/admin/cdb_rest/globaltagchange/"


@pytest.fixture
def operator(api):
    api.post("gt", {"name": "run24", "status": "unlocked", "comment": "for the autumn"}).ok()
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def test_the_log_is_shown(operator):
    page = operator.get(LOG)
    assert page.status_code == 200
    for text in (b"run24", b"create", b"for the autumn", b"127.0.0.1"):
        assert text in page.content
    change = operator.get(f"{LOG}{GlobalTagChange.objects.get().id}/change/")
    assert change.status_code == 200 and b"unlocked" in change.content
    assert operator.get(f"{LOG}?q=autumn&action=create").status_code == 200


def test_nothing_can_be_changed(operator):
    change = GlobalTagChange.objects.get()
    for path in (f"{LOG}add/", f"{LOG}{change.id}/delete/", f"{LOG}{change.id}/change/"):
        assert operator.post(path, {"comment": "another", "post": "yes"}).status_code == 403
    operator.post(LOG, {"action": "delete_selected", "_selected_action": change.id, "post": "yes"})
    change.refresh_from_db()
    assert change.comment == "for the autumn"


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
