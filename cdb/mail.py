"""Django's settings for mail, from CDB_MAIL_URL and CDB_MAIL_FROM."""

from typing import Any
from urllib.parse import unquote, urlsplit

from cdb import env
from cdb.env import ConfigurationError

PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
TIMEOUT_SECONDS = 10


def settings() -> dict[str, Any]:
    """The settings by name; without CDB_MAIL_URL only CDB_MAIL, whether there is mail.

    Raises `ConfigurationError`, whose message does not show the password.
    """
    url, sender, public = (env.read()[name] for name in ("CDB_MAIL_URL", "CDB_MAIL_FROM", "CDB_PUBLIC_URL"))
    if not url:
        return {"CDB_MAIL": False}
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        host, port = None, 0
    if not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise ConfigurationError(
            "CDB_MAIL_URL must look like smtp+tls://user:password@host:587, smtp://host or smtps://host"
        )
    if not sender or not public:
        raise ConfigurationError("CDB_MAIL_URL also needs CDB_MAIL_FROM, and CDB_PUBLIC_URL for the links in mail")
    return {
        "CDB_MAIL": True,
        "EMAIL_HOST": host,
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": TIMEOUT_SECONDS,
        "DEFAULT_FROM_EMAIL": sender,
    }
