"""Webhooks: HTTP requests with a signature, sent only to addresses that are permitted."""

import base64
import contextlib
import hmac
import random
import socket
import ssl
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address, ip_network
from threading import Timer
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings

# For the whole request, except the resolution of the name.
TIMEOUT_SECONDS = 5.0
# IPv6 addresses that Python takes for public: those with an IPv4 address (NAT64, 6to4, IPv4-compatible), and site-local ones.
NOT_PUBLIC = [ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "fec0::/10")]
TLS = ssl.create_default_context()


class DeliveryError(OSError):
    """A receiver did not get a notice. The message says why, and has no secrets."""


def send(url: str, secret: str, identifier: str, body: bytes) -> None:
    """POST a JSON text to a receiver, with the headers of Standard Webhooks. Source: standardwebhooks.com.

    The connection goes to an address that was checked, without proxies, and redirects are not followed. Raises `DeliveryError`
    unless the status is 2xx within `TIMEOUT_SECONDS`.
    """
    parts, now = urlsplit(url), str(int(time.time()))
    signed = f"{identifier}.{now}.".encode() + body
    signature = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256")
    headers = {
        "Content-Type": "application/json",
        "webhook-id": identifier,
        "webhook-timestamp": now,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
    is_secure, host = parts.scheme == "https", parts.hostname or ""
    port = parts.port or (443 if is_secure else 80)
    address, begin = _address(host, port), time.monotonic()
    connection = HTTPSConnection(host, port, context=TLS) if is_secure else HTTPConnection(host, port)
    # The timeout of a socket is for each part of a response only.
    timer = Timer(TIMEOUT_SECONDS, _abort, [connection])
    timer.start()
    try:
        channel: Any = socket.create_connection((address, port), TIMEOUT_SECONDS)
        if is_secure:
            channel = TLS.wrap_socket(channel, server_hostname=host, do_handshake_on_connect=False)
        connection.sock = channel
        if is_secure:
            channel.do_handshake()
        connection.request("POST", urlunsplit(("", "", parts.path or "/", parts.query, "")), body, headers)
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        if time.monotonic() - begin >= TIMEOUT_SECONDS:
            raise DeliveryError(f"The receiver did not respond within {TIMEOUT_SECONDS:.0f} s.") from error
        # It may have what the receiver has sent.
        reason = str(error).strip().encode("unicode_escape").decode()
        raise DeliveryError(f"The request failed: {reason or type(error).__name__}.") from error
    finally:
        timer.cancel()
        connection.close()
    if not 200 <= status < 300:
        more = "; redirects are not followed" if 300 <= status < 400 else ""
        raise DeliveryError(f"The receiver responded with status {status}{more}.")


def _address(host: str, port: int) -> str:
    """An address of a host, one of IPv4 if there is one. Raises `DeliveryError` if any of its addresses is not permitted."""
    try:
        found = sorted({place[0] for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}, key=str)
    except (OSError, UnicodeError) as error:
        raise DeliveryError(f"The name {host} cannot be resolved: {error}.") from error
    for text in found:
        address = ip_address(text)
        address = getattr(address, "ipv4_mapped", None) or address
        is_public = address.is_global and not address.is_multicast and not any(address in one for one in NOT_PUBLIC)
        if not is_public and not any(address in network for network in settings.CDB_WEBHOOK_NETWORKS):
            raise DeliveryError(f"{host} has the address {text}, which is not public; see CDB_WEBHOOK_NETWORKS.")
    # A retry may find another one that works.
    return str(random.choice([text for text in found if "." in str(text)] or found))  # noqa: S311


def _abort(connection: HTTPConnection) -> None:
    with contextlib.suppress(OSError, TypeError):
        # The method of TLS sockets would wait for the receiver.
        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
