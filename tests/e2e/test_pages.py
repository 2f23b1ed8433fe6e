"""The pages of production in a real browser: they work with their Content-Security-Policy."""

import pytest
from playwright.sync_api import expect

PASSWORD = "correct horse battery"


@pytest.fixture
def page(browser, service):
    """A tab; at its end no script has failed, and nothing was kept from loading."""
    failures = []
    context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}")
    tab = context.new_page()
    tab.on("pageerror", lambda error: failures.append(str(error)))
    tab.on("console", lambda message: failures.append(message.text) if "Security Policy" in message.text else None)
    yield tab
    context.close()
    assert failures == []


def test_the_page_of_the_service_leads_to_its_parts(page):
    page.goto("/")
    expect(page.get_by_role("heading", name="cdb")).to_be_visible()
    page.get_by_role("navigation").get_by_role("link", name="API", exact=True).click()
    expect(page.locator(".opblock-tag").first).to_contain_text("Lookup")


@pytest.mark.parametrize(
    "name", ["Lookup-get_payload_iovs_query", "Legacy_paths-get_payloadiovs", "Inserting-post_payload_iovs_insert"]
)
def test_an_operation_can_be_tried_out_as_it_is(page, name):
    page.goto("/api/docs/")
    operation = page.locator(f"#operations-{name}")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_status")).to_contain_text("200")
    expect(operation.locator(".live-responses-table tbody")).to_contain_text("Pixel_Alignment")


def test_the_admin_can_be_used(page, service):
    service.environment |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    service.manage("createsuperuser", "--noinput", "--username", "reader", "--email", "reader@example.org")
    page.goto("/admin/")
    page.fill("#id_username", "reader")
    page.fill("#id_password", PASSWORD)
    page.click("input[type=submit]")
    page.goto("/admin/cdb_rest/globaltagchange/")
    expect(page.locator("#changelist")).to_be_visible()
    page.goto("/admin/auth/user/")
    expect(page.locator("#result_list")).to_contain_text("reader")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#content")).to_contain_text("Thanks")


def test_a_page_runs_no_inline_script(browser, service):
    context = browser.new_context(base_url=f"http://127.0.0.1:{service.port}")
    tab = context.new_page()
    tab.goto("/admin/login/")
    tab.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"
    )
    assert tab.evaluate("() => window.ran") is None
    context.close()
