"""The pages about access: the login, the rules, those of a tag, and the tokens."""

import re
import time
from html import unescape

import pytest
from django.contrib.auth.models import User

from cdb_rest.access import memory, rules
from cdb_rest.models import AccessChange, AccessRule, ApiToken
from cdb_rest.rules.access import is_token
from tests.api.helpers import grant
from tests.conftest import ServiceClient
from tests.web.forms import Forms

pytestmark = pytest.mark.django_db(transaction=True)
RULE = {"kind": "user", "subject": "bob", "role": "manager", "tags": "online_*", "types": ".*", "comment": "why"}
TOKEN = {"name": "robot", "role": "contributor", "tags": ".*", "types": ".*", "days": "30", "comment": ""}
PAGES = ("/access", "/tags/tag/access", "/tokens", "/subscriptions")


def test_an_administrator_grants_after_a_preview_and_revokes(tag, person):
    admin = person("ann", "administrator")
    preview = admin.send("/access", admin.open("/access"), RULE, 200).content.decode()
    assert "perhaps online_.* is meant" in unescape(preview) and AccessRule.objects.count() == 1
    wrong = admin.send("/access", preview, RULE | {"tags": "("}, 400).content.decode()
    assert "tags must be a regular expression" in unescape(wrong) and 'value="bob"' in wrong
    confirmed = RULE | {"tags": "online_.*", "confirmed": "1"}
    response = admin.send("/access", preview, confirmed, 303)
    rule = AccessRule.objects.get(subject="bob")
    assert response["Location"] == f"?granted={rule.id}"
    assert admin.send("/access", preview, confirmed, 303)["Location"] == f"?found={rule.id}"
    assert f"Delete rule {rule.id}?" in admin.open(f"/access?revoke={rule.id}")
    assert AccessRule.objects.filter(id=rule.id).exists()
    admin.send("/access", preview, {"action": "revoke", "rule": rule.id}, 303)
    assert [(one.actor, one.action) for one in AccessChange.objects.order_by("id")[1:]] == [
        ("ann", "grant"),
        ("ann", "revoke"),
    ]
    own = AccessRule.objects.get()
    assert "You will no longer be an administrator" in admin.open(f"/access?revoke={own.id}")


def test_the_page_of_a_tag_has_the_rules_that_apply_to_it(person, build):
    build.tag("run24", "locked")
    grant(kind="user", subject="of another tag", role="manager", tags="other.*")
    grant(kind="user", subject="some types", role="manager", types="Pixel_.*")
    grant(kind="user", subject="a contributor", role="contributor")
    page = person("pub", "publisher").open("/tags/run24/access")
    assert "insert, unlock, freeze" in page and "some types" not in page
    page = person("ann", "administrator").open("/tags/run24/access")
    found = dict(re.findall(r"<td>user (.*?)</td><td>\w+</td><td>(.*?)</td>", page))
    # A contributor may not insert into a locked tag, nor may a manager of some types change it as a whole.
    assert found == {
        "some types": "insert",
        "a contributor": "nothing",
        "pub": "insert, unlock, freeze",
        "ann": "insert, unlock, freeze",
    }
    assert 'name="tags" value="run24"' in page


def test_the_text_of_a_token_is_in_one_response_that_nothing_stores(api, tag, person):
    admin, other = person("ann", "administrator"), person("eve", "administrator")
    response = admin.send("/tokens", admin.open("/tokens"), TOKEN, 200)
    text = re.search(r'<pre class="token"><code>(\w+)</code>', response.content.decode())[1]
    assert is_token(text) and response["Cache-Control"] == "no-store"
    rules.forget()
    assert api.get("whoami", Authorization=f"Bearer {text}").ok()["name"] == "token:robot"
    assert not any(text in str(row) for model in (ApiToken, AccessChange) for row in model.objects.values_list())
    row = r"<td>robot</td>.*>valid<.*<div>contributor</div>"
    assert re.search(row, admin.open("/tokens")) and text not in admin.open("/tokens?all")
    # Each administrator sees first what is his or her own.
    assert not re.search(row, other.open("/tokens")) and re.search(f"{row}.*<td>ann</td>", other.open("/tokens?all"))
    wrong = admin.send("/tokens", admin.open("/tokens"), TOKEN | {"comment": "kept"}, 400).content.decode()
    assert "already" in wrong and 'value="kept"' in wrong
    admin.send("/tokens", wrong, TOKEN | {"name": "other", "days": "7"}, 400)
    assert "Revoke the token robot?" in other.open("/tokens?revoke=robot")
    other.send("/tokens", other.open("/tokens"), {"action": "revoke", "name": "robot"}, 303)
    assert ApiToken.objects.get().revoked is not None and ">revoked<" in admin.open("/tokens")


@pytest.mark.parametrize("path", PAGES)
def test_only_administrators_see_and_change_rules_and_tokens(tag, person, settings, path):
    grant(kind="token", subject="secret-robot", role="manager")
    before = AccessChange.objects.count()
    known = (
        person("ann", "administrator"),
        person("pub", "publisher"),
        person("part", "administrator", tags="ta.*"),
        person("nobody"),
    )
    page = known[0].open(path)
    before += 3
    assert "<form method=" in page and ("secret-robot" in page or path in ("/tokens", "/subscriptions"))
    visitor = Forms()
    visitor.client.cookies["csrftoken"] = known[0].client.cookies["csrftoken"].value
    writes = [RULE | {"confirmed": "1"}, TOKEN, {"action": "revoke", "rule": 1, "name": "x"}]
    for forms in (*known[1:], visitor):
        shown = forms.open(path)
        assert "<form method=" not in shown and "secret-robot" not in shown
        assert "needs the role administrator." in shown and ('href="/access"' in shown) and ">Tokens</a>" not in shown
        forms.client.cookies["csrftoken"] = known[0].client.cookies["csrftoken"].value
        for values in writes:
            found = forms.send(path, page, values, 401 if forms is visitor else 403).content.decode()
            assert "the role administrator" in found
    # Open writes permit all other writes, but a rule or a token would outlive them.
    settings.CDB_OPEN_WRITES = True
    for values in writes:
        visitor.send(path, page, values, 401)
    # Without the CSRF token of the form, an administrator changes nothing, either.
    for values in writes:
        assert known[0].client.post(path, values).status_code == 403
    assert AccessChange.objects.count() == before
    assert "<form method=" in known[0].open(path)


class TestLogin:
    @pytest.fixture(autouse=True)
    def _account(self, settings):
        # The usual hash of a password takes a third of a second.
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        settings.CDB_OPEN_WRITES = False
        User.objects.create_user("ann", password="the right one")

    @staticmethod
    def log_in(forms, status=302, **values):
        values = {"username": "ann", "password": "the right one"} | values
        return forms.send("/login", forms.open("/login"), values, status)

    def test_a_person_logs_in_and_comes_back(self, forms):
        assert 'name="next" value="/tags?q=x"' in forms.open("/login?next=/tags%3Fq%3Dx")
        wrong = self.log_in(forms, 200, password="wrong", next="/tags").content.decode()
        assert 'role="alert"' in wrong and 'value="ann"' in wrong and 'value="/tags"' in wrong
        response = self.log_in(forms, next="/tags?q=x")
        assert response["Location"] == "/tags?q=x" and "<li>ann</li>" in forms.open("/tags")
        assert "You are logged in as ann." in forms.open("/login")

    @pytest.mark.parametrize(
        "url",
        ["https://evil.example/", "//evil.example/", r"/\evil.example", "javascript:alert(1)", "http:evil.example"],
    )
    def test_a_login_leads_to_no_other_site(self, forms, url):
        assert "evil" not in forms.open(f"/login?next={url}").split("<main")[1]
        assert self.log_in(forms, next=url)["Location"] == "/"

    def test_many_wrong_passwords_are_refused_and_so_is_the_right_one_then(self, forms, monkeypatch):
        for _ in range(memory.LIMIT):
            self.log_in(forms, 200, password="wrong")
        assert "Too many" in self.log_in(forms, status=429).content.decode()
        later = time.time() + memory.PERIOD_SECONDS + 1
        monkeypatch.setattr("django.core.cache.backends.locmem.time.time", lambda: later)
        self.log_in(forms)

    def test_the_login_is_open_if_reads_are_closed(self, forms, settings):
        settings.CDB_ANONYMOUS_READS = False
        forms.client = ServiceClient(enforce_csrf_checks=True, headers={"Accept": "text/html"})
        grant(kind="user", subject="ann", role="reader")
        assert forms.client.get("/tags").status_code == 401
        self.log_in(forms)
        assert forms.client.get("/tags").status_code == 200
