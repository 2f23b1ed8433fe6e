"""A client that keeps cookies, for the admin."""

import http.client
import re
from urllib.parse import urlencode


class Browser:
    """Keeps cookies, as a browser does, and follows no redirects."""

    def __init__(self, port, secure=None, host="localhost"):
        self.port, self.secure, self.host = port, secure, host
        self.cookies = {}
        self.set = []

    def __call__(self, method, path, form=None, **headers):
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind("127.0.0.1", self.port, timeout=60, **({"context": self.secure} if self.secure else {}))
        headers["Host"] = f"{self.host}:{self.port}"
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, urlencode(form) if form is not None else None, headers)
        response = connection.getresponse()
        self.set = response.headers.get_all("Set-Cookie") or []
        for cookie in self.set:
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def log_in(self, password, **headers):
        _, _, page = self("GET", "/admin/login/")
        token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page)[1].decode()
        form = {"username": "operator", "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"}
        return self("POST", "/admin/login/?next=/admin/", form, **headers)
