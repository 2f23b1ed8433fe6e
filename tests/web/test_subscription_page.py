"""The page /subscriptions: who sees it, and what its forms do."""

import re
from html import unescape

import pytest

from cdb_rest.models import AccessChange, Subscription
from cdb_rest.notices import webhooks
from tests.receivers import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/subscriptions"


def test_an_administrator_creates_tests_resumes_and_deletes_a_subscription(person, settings):
    settings.CDB_WEBHOOK_NETWORKS = [webhooks.ip_network(text) for text in ("127.0.0.0/8", "::1")]
    admin, receiver = person("ann", "administrator"), Receiver()
    form = {"url": receiver.url, "tags": "run.*", "actions": ["insert", "status"]}
    response = admin.send(PAGE, admin.open(PAGE), form, 200)
    secret = unescape(re.search(r'class="token"><code>([^<]+)<', response.content.decode())[1])
    assert response["Cache-Control"] == "no-store" and secret not in admin.open(PAGE)
    page = admin.open(PAGE)
    assert "working" in page and "kinds insert, status" in page and "Resume" not in page
    number = Subscription.objects.get().id

    def act(action, status=200):
        return admin.send(PAGE, page, {"action": action, "subscription": number}, status).content.decode()

    assert "has got the test" in act("test") and receiver.changes(secret) == []
    receiver.behaves = 500
    assert "responded with status 500" in act("test")
    Subscription.objects.update(
        failures=3, problem="status 500", stopped="2026-01-01T00:00Z", failing_since="2025-12-01T00:00Z"
    )
    assert "stopped" in admin.open(PAGE) and "status 500" in admin.open(PAGE)
    act("resume", 303)
    assert "working" in admin.open(PAGE) and f"Delete subscription {number}?" in admin.open(f"{PAGE}?delete={number}")
    assert "action must be" in act("other", 400)
    act("delete", 303)
    assert "There are no subscriptions" in admin.open(PAGE) and "There is no subscription" in act("test", 404)
    log = AccessChange.objects.exclude(action="grant").order_by("id")
    assert [one.action for one in log] == ["subscribe", "resume_subscription", "unsubscribe"]
    assert {one.actor for one in log} == {"ann"} and log[0].detail["url"] == f"http://localhost:{receiver.port}"
    assert secret not in str(list(log.values()))
    receiver.close()


def test_what_is_wrong_is_said_and_the_input_is_kept(person):
    admin = person("ann", "administrator")
    form = {"url": "ftp://host/", "tags": "kept", "actions": ["insert"]}
    page = unescape(admin.send(PAGE, admin.open(PAGE), form, 400).content.decode())
    assert "url must be https://host/path" in page and 'value="kept"' in page and 'value="insert" checked' in page
    assert "There is no subscription" in unescape(admin.client.get(f"{PAGE}?delete=5").content.decode())
