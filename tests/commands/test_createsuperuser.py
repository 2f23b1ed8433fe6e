"""Creation of accounts for the admin without questions."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError

pytestmark = pytest.mark.django_db

ACCOUNT = {"interactive": False, "username": "operator", "email": "operator@example.org"}


@pytest.mark.parametrize("password", ["x", "123456789012345", "operator-operator", "password1234"])
def test_a_password_that_is_easy_to_guess_is_refused_in_one_line(monkeypatch, password):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", password)
    with pytest.raises(CommandError, match="DJANGO_SUPERUSER_PASSWORD: Th") as refused:
        call_command("createsuperuser", **ACCOUNT)
    assert "\n" not in str(refused.value)
    assert not User.objects.exists()


def test_a_good_password_is_taken(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "correct horse battery")
    call_command("createsuperuser", **ACCOUNT, stdout=StringIO())
    assert User.objects.get().check_password("correct horse battery")
