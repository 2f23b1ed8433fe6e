"""Notices: what receivers and persons get of changes and requests, and what becomes of subscriptions that fail."""

import json
import re
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import wait
from contextlib import nullcontext
from datetime import timedelta

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from django.contrib.auth.models import User
from django.utils import timezone
from standardwebhooks import Webhook

from cdb.env import ROOT
from cdb_rest.api.changes import notice_of
from cdb_rest.api.service import metrics_text
from cdb_rest.models import ChangeRequest, GlobalTagChange, Subscription
from cdb_rest.notices import webhooks
from cdb_rest.notices.delivery import Deliverer
from cdb_rest.notices.mail import send_about_requests
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.writes import subscriptions
from cdb_rest.writes.global_tags import change_status, create_global_tag
from loadtests.service import free_port
from tests.api.helpers import grant
from tests.programs import needs
from tests.receivers import Receiver, drip

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(settings):
    """Makes receivers."""
    settings.CDB_WEBHOOK_NETWORKS = [webhooks.ip_network(text) for text in ("127.0.0.0/8", "::1")]
    made = []

    def make(*options):
        made.append(Receiver(*options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def subscribe(url, tags=".*", actions=()):
    return subscriptions.subscribe(actor="ann", url=url, tags=tags, actions=actions)


def deliver(times=1):
    """What the background process does in so many of its rounds."""
    deliverer = Deliverer(notice_of)
    for _ in range(times):
        deliverer.step()
        wait(deliverer.running)
        for one in deliverer.running:
            one.result()


def create(name):
    create_global_tag(name=name, author="", description="", status="unlocked", origin=Origin("ann", "why"))


def again():
    """Let the waits after failures pass."""
    Subscription.objects.update(next_attempt=timezone.now())


def figures():
    """The metrics: working, failing and stopped subscriptions, and whether one waits for a change."""
    found = dict(re.findall(r"^(cdb_(?:sub|notice)\S+) (\S+)$", metrics_text().decode(), re.MULTILINE))
    counts = [int(float(found[f'cdb_subscriptions{{state="{state}"}}'])) for state in ("working", "failing", "stopped")]
    return (*counts, float(found["cdb_notice_age_seconds"]) > 0)


def test_a_receiver_gets_each_matching_change_once_in_order_with_a_valid_signature(receiver):
    one, other = receiver(), receiver()
    create("before")
    everything = subscribe(one.url)
    some = subscribe(other.url, "a.*", ["status"])
    for name in ("a1", "b1", "a2"):
        create(name)
    for name in ("a1", "b1"):
        change_status(name=name, status="locked", origin=Origin("bob"))
    deliver(3)
    expected = [
        (tag, revision)
        for tag, revision in GlobalTagChange.objects.order_by("number").values_list("global_tag", "revision")
    ]
    assert one.changes(everything.secret) == expected[1:] and len(one.requests) == 1
    assert [tag for tag, _ in other.changes(some.secret)] == ["a1"]
    headers, body = one.requests[0]
    assert headers["Content-Type"] == "application/json" and headers["Host"] == f"localhost:{one.port}"
    document = json.loads(body)
    assert document["changes"][0]["comment"] == "why"
    assert document["cursor"] == str(Subscription.objects.get(id=everything.id).delivered)
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(some.secret).verify(body, headers)
    # What does not match is passed over, and asks for no request.
    create("b3")
    deliver()
    assert len(other.requests) == 1 and len(one.requests) == 2
    assert len(set(Subscription.objects.values_list("delivered", flat=True))) == 1


def test_changes_that_a_receiver_does_not_confirm_are_sent_again(receiver):
    one = receiver(503)
    subscription = subscribe(one.url)
    create("first")
    deliver(2)
    # The second attempt is not due yet.
    subscription.refresh_from_db()
    assert len(one.requests) == subscription.failures == 1
    assert 3 < (subscription.next_attempt - timezone.now()).total_seconds() <= 5
    assert figures() == (0, 1, 0, True)
    create("second")
    again()
    one.behaves = 204
    deliver()
    assert figures() == (1, 0, 0, False)
    first, second = ({key: headers[key] for key in ("webhook-id",)} for headers, _ in one.requests)
    # Other contents, another identifier.
    assert first != second
    assert [tag for tag, _ in one.changes(subscription.secret)] == ["first", "first", "second"]
    subscription.refresh_from_db()
    assert (subscription.failures, subscription.failing_since, subscription.problem) == (0, None, "")


def test_the_receiver_of_the_documentation_stores_each_change_once(receiver, tmp_path):
    [program] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "notices.md").read_text(), re.DOTALL)
    port = free_port()
    subscription = subscribe(f"http://127.0.0.1:{port}/")
    (tmp_path / "secret").write_text(subscription.secret)
    with subprocess.Popen([sys.executable, "-c", program.replace("9000", str(port))], cwd=tmp_path) as process:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.05)
            create("tag")
            deliver()
            Subscription.objects.update(delivered=0)
            create("other")
            deliver()
            Subscription.objects.update(delivered=0, secret="whsec_AAAA", next_attempt=timezone.now())
            deliver()
        finally:
            process.kill()
    assert "status 401" in Subscription.objects.get().problem
    with sqlite3.connect(tmp_path / "changes.db") as store:
        assert store.execute("SELECT tag, revision FROM change ORDER BY rowid").fetchall() == [("tag", 1), ("other", 1)]


@pytest.mark.parametrize(
    ("behaves", "problem"),
    [
        (500, "responded with status 500."),
        (302, "responded with status 302; redirects are not followed."),
        (lambda handler: handler.connection.close(), "The request failed: Remote end closed"),
        (lambda handler: handler.wfile.write(b"\0nonsense\r\n\r\n"), r"The request failed: \x00nonsense."),
        (lambda handler: time.sleep(3), "did not respond within 1 s."),
        (drip, "did not respond within 1 s."),
    ],
)
def test_what_a_receiver_does_wrong_is_told_in_time(receiver, monkeypatch, behaves, problem):
    monkeypatch.setattr(webhooks, "TIMEOUT_SECONDS", 1.0)
    wrong = receiver(behaves)
    subscribe(wrong.url)
    create("tag")
    begin = time.monotonic()
    deliver()
    # `drip` takes 100 s.
    assert time.monotonic() < begin + 30 and len(wrong.requests) == 1
    subscription = Subscription.objects.get()
    assert problem in subscription.problem and subscription.delivered == 0


def test_a_slow_receiver_delays_no_other_one(receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "TIMEOUT_SECONDS", 60.0)
    asked = threading.Event()
    slow = receiver(lambda handler: handler.send_error(500 if asked.wait(30) else 504))
    quick = receiver(lambda handler: asked.set() or handler.send_error(500))
    for one in (slow, quick):
        subscribe(one.url)
    create("tag")
    deliver()
    assert all("status 500" in one.problem for one in Subscription.objects.all())


@pytest.mark.parametrize(
    ("host", "found", "address"),
    [
        ("localhost", None, "127.0.0.1"),
        ("2130706433", None, "127.0.0.1"),
        ("[::ffff:10.0.0.1]", None, "::ffff:10.0.0.1"),
        ("[64:ff9b::a00:1]", None, "64:ff9b::a00:1"),
        ("[::10.0.0.1]", None, "::10.0.0.1"),
        ("[fec0::1]", None, "fec0::1"),
        ("169.254.169.254", None, "169.254.169.254"),
        ("224.0.0.1", None, "224.0.0.1"),
        ("public.example", ["93.184.215.14", "10.0.0.1"], "10.0.0.1"),
        ("public.example", ["fd00::1"], "fd00::1"),
    ],
)
def test_no_request_goes_to_an_address_that_is_not_public(monkeypatch, host, found, address):
    """Also if only one of the addresses of a name is private."""
    if found:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (one, 80)) for one in found])
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it connects"))
    with pytest.raises(webhooks.DeliveryError, match="which is not public") as error:
        webhooks.send(f"http://{host}:8080/", "whsec_AAAA", "1", b"{}")
    assert address in str(error.value)


def test_the_name_is_resolved_once(receiver, monkeypatch):
    """So the connection goes to the address that was checked."""
    one, asked = receiver(), []

    def resolve(host, *rest, **named):
        asked.append(host)
        return [(0, 0, 0, "", ("127.0.0.1", one.port))] if host == "name.example" else real(host, *rest, **named)

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    webhooks.send(f"http://name.example:{one.port}", "whsec_AAAA", "1", b"{}")
    assert asked.count("name.example") == 1 and one.requests[0][0]["Host"] == f"name.example:{one.port}"


@needs("openssl")
@pytest.mark.parametrize(("name", "problem"), [("localhost", None), ("other.example", "not valid for 'localhost'")])
def test_the_certificate_of_a_receiver_must_be_trusted_and_for_its_name(receiver, monkeypatch, tmp_path, name, problem):
    file = tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", file, "-out", tmp_path / "public"]
    names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    subprocess.run([*command, *names], check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "public").read_text())
    one = receiver(200, file)
    with pytest.raises(webhooks.DeliveryError, match="self-signed certificate"):
        webhooks.send(one.url, "whsec_AAAA", "1", b"{}")
    monkeypatch.setattr(webhooks, "TLS", ssl.create_default_context(cafile=file))
    with pytest.raises(webhooks.DeliveryError, match=problem) if problem else nullcontext():
        webhooks.send(one.url, "whsec_AAAA", "1", b"{}")
    assert len(one.requests) == (problem is None)


def test_a_week_of_failures_stops_a_subscription_until_it_is_resumed(receiver):
    one = receiver(500)
    number = subscribe(one.url).id
    create("tag")
    values = {"failures": 40, "failing_since": timezone.now() - timedelta(days=6)}
    for days in (6, 8):
        Subscription.objects.update(**values | {"failing_since": timezone.now() - timedelta(days=days)})
        again()
        deliver()
        subscription = Subscription.objects.get(id=number)
        assert subscription.next_attempt - timezone.now() > timedelta(hours=23)
        assert (subscription.stopped is not None) == (days > 7)
    again()
    deliver()
    one.behaves = 200
    assert len(one.requests) == 2 and figures() == (0, 0, 1, False)
    # New changes have no position until a subscription, or a client of `GET changes`, wants them.
    subscribe(one.url)
    create("other")
    assert figures() == (1, 0, 1, True)
    subscriptions.resume(actor="ann", number=number)
    deliver()
    assert len(one.requests) == 4 and Subscription.objects.get(id=number).failures == 0


def test_many_changes_come_in_several_requests(receiver):
    one = receiver()
    subscription = subscribe(one.url)
    for number in range(250):
        create(f"tag-{number}")
    deliver()
    assert [tag for tag, _ in one.changes(subscription.secret)] == [f"tag-{number}" for number in range(250)]
    assert [len(json.loads(body)["changes"]) for _, body in one.requests] == [100, 100, 50]


def test_two_processes_do_not_send_the_same(receiver):
    one = receiver(lambda handler: (time.sleep(0.5), handler.send_response(200), handler.end_headers()))
    subscribe(one.url)
    create("tag")
    deliverers = [Deliverer(notice_of), Deliverer(notice_of)]
    for each in deliverers:
        each.step()
    wait([future for each in deliverers for future in each.running])
    assert len(one.requests) == 1


@pytest.mark.parametrize(
    "values",
    [
        *({"url": url} for url in (
            "", "ftp://host/", "host/path", "http://", "http://user:word@host/", "http://host:0/", "http://host:99999/",
            "http://host/a b", "http://bücher.example/", "http://[::1/", "mailto:", "mailto:a@b.example?subject=x",
            "mailto:a@b.example,c@d.example", f"http://host/{'x' * 1000}", "http://host\r\nx:y/",
        )),
        {"tags": ""}, {"tags": "("}, {"tags": "a" * 256}, {"actions": ["other"]},
    ],
)  # fmt: skip
def test_a_wrong_subscription_is_refused(values):
    with pytest.raises(InvalidInputError):
        subscriptions.subscribe(**{"actor": "ann", "url": "http://host/", "tags": ".*", "actions": []} | values)
    assert not Subscription.objects.exists()


def test_a_bug_with_one_subscription_is_a_failure_of_this_one(receiver, monkeypatch, caplog):
    one = receiver()
    # No service stores it.
    Subscription.objects.create(url="https://x", secret="whsec_AAA", creator="ann", delivered=0)
    subscribe(one.url)
    create("tag")
    deliver()
    assert len(one.requests) == 1 and "Traceback" in caplog.text
    assert sorted(Subscription.objects.values_list("failures", flat=True)) == [0, 1]


class Post(Message):
    """Keeps the mails that a server gets, and refuses those to `refused`."""

    def __init__(self):
        super().__init__()
        self.mails, self.refused = [], set()

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    def handle_message(self, message):
        self.mails.append(message)


@pytest.fixture
def post(settings):
    """The mails that a real server gets."""
    handler = Post()
    controller = Controller(handler, hostname="127.0.0.1", port=free_port())
    controller.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.CDB_MAIL, settings.EMAIL_HOST = True, "127.0.0.1"
    settings.EMAIL_PORT = controller.port
    settings.DEFAULT_FROM_EMAIL, settings.CDB_PUBLIC_URL = "cdb@example.org", "https://cdb.example.org"
    yield handler
    controller.stop(no_assert=True)


def sent(post):
    """Recipients, subject and text of the mails, which are forgotten."""
    found = [
        (set(mail["X-RcptTo"].split(", ")), mail["Subject"], mail.get_payload(decode=True).decode().replace("\r", ""))
        for mail in post.mails
    ]
    post.mails.clear()
    return found


def test_a_person_gets_the_changes_of_five_minutes_in_one_mail(post):
    subscription = subscribe("mailto:ann@example.org", "a.*")
    for name in ("a1", "b1", "a2"):
        create(name)
    deliver()
    create("a3")
    deliver()
    [(recipients, subject, text)] = sent(post)
    assert recipients == {"ann@example.org"} and subject == "[cdb] 2 global tags have changed"
    assert text.splitlines()[0] == "a1 revision 1: create, by ann. why" and "https://cdb.example.org/log" in text
    again()
    deliver()
    assert [subject for _, subject, _ in sent(post)] == ["[cdb] a3 has changed"]
    create("a4")
    post.refused.add("ann@example.org")
    again()
    deliver()
    subscription.refresh_from_db()
    assert "no such user" in subscription.problem and subscription.failures == 1


def test_those_who_may_decide_a_request_and_the_person_who_made_it_get_mail(post, settings):
    create("tag")
    for name in ("requester", "manager", "contributor", "other", "gone", "root"):
        User.objects.create_user(name, f"{name}@example.org", is_active=name != "gone", is_superuser=name == "root")
    User.objects.create_user("silent")
    for name, role in (
        ("manager", "manager"),
        ("contributor", "contributor"),
        ("gone", "manager"),
        ("silent", "manager"),
    ):
        grant(kind="user", subject=name, role=role)
    grant(kind="user", subject="other", role="manager", tags="elsewhere")
    values = {"global_tag": "tag", "revision": 1, "document": {}, "reason": "new\nsurvey", "requester": "requester"}
    old = ChangeRequest.objects.create(kind="import", **values)
    ChangeRequest.objects.filter(id=old.id).update(created=timezone.now() - timedelta(days=2))
    request = ChangeRequest.objects.create(kind="import", **values)
    clone = ChangeRequest.objects.create(kind="clone", **values)
    post.refused.add("root@example.org")
    send_about_requests()
    found = {subject: (recipients, text) for recipients, subject, text in sent(post)}
    assert set(found) == {f"[cdb] Request {one.id} ({one.kind}, tag) is open" for one in (request, clone)}
    recipients, text = found[f"[cdb] Request {request.id} (import, tag) is open"]
    assert recipients == {"manager@example.org", "contributor@example.org"}
    assert "requester asks for this change: new\nsurvey" in text
    assert f"https://cdb.example.org/requests/{request.id}" in text
    assert found[f"[cdb] Request {clone.id} (clone, tag) is open"][0] == {"manager@example.org"}
    decided = {"state": "rejected", "decided": timezone.now(), "decided_by": "manager", "answer": "not now"}
    ChangeRequest.objects.filter(id=request.id).update(**decided)
    ChangeRequest.objects.filter(id=clone.id).update(**decided | {"state": "withdrawn", "decided_by": "requester"})
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    with pytest.raises(OSError, match="refused"):
        for _ in range(3):
            send_about_requests()
    settings.EMAIL_PORT = port
    send_about_requests()
    send_about_requests()
    assert sent(post) == [
        (
            {"requester@example.org"},
            f"[cdb] Request {request.id} (import, tag) is rejected",
            f"It was rejected by manager. not now\n\nhttps://cdb.example.org/requests/{request.id}\n",
        )
    ]


def test_without_settings_no_mail_is_sent(post, settings):
    settings.CDB_MAIL = False
    ChangeRequest.objects.create(kind="import", global_tag="t", revision=1, document={}, reason="r", requester="ann")
    subscribe("mailto:ann@example.org")
    create("tag")
    send_about_requests()
    deliver()
    assert post.mails == [] and "Mail is off" in Subscription.objects.get().problem
