"""A browser for tests of forms."""

import re
from html import unescape

from django.test import Client


class Forms:
    """A browser with cookies that sends the CSRF token of a form, and its hidden fields."""

    def __init__(self):
        self.client = Client(enforce_csrf_checks=True, headers={"Accept": "text/html"})

    def open(self, path):
        return self.client.get(path).content.decode()

    def send(self, path, page, values, status):
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
        response = self.client.post(path, {"csrfmiddlewaretoken": token} | values)
        assert response.status_code == status, (response.status_code, response.content.decode()[:3000])
        return response

    def preview(self, path, values, status=200):
        """The page with the preview, and the values of its hidden fields."""
        page = self.send(path, self.open(path), values, status).content.decode()
        return page, hidden_of(page)


def hidden_of(page):
    """The fields of the form with the preview that a browser sends again: hidden ones, and the rows of a file."""
    found = dict(re.findall(r'type="hidden" name="(planned|previewed)" value="([^"]*)"', page))
    if text := re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL):
        # A browser sends line breaks in this form.
        found["text"] = unescape(text[1]).replace("\n", "\r\n")
    return found
