"""Clients that send invalid requests, which must get the right error."""

import random
from typing import NamedTuple

from loadtests.users.base import CheckedUser
from loadtests.users.calls import Calls, Reply

LOOKUP = "payloadiovs/?gtName=tiny"
TEXT = {"Content-Type": "text/plain"}


class Mistake(NamedTuple):
    """An invalid request, with the status and code of the expected error."""

    name: str
    method: str
    path: str
    status: int
    code: str
    body: bytes | None = None
    headers: dict[str, str] | None = None


MISTAKES = (
    Mistake("unknown tag", "GET", "payloadiovs/?gtName=no-such-tag&majorIOV=1&minorIOV=1", 404, "global_tag_not_found"),
    Mistake("no tag", "GET", "payloadiovs/?majorIOV=1&minorIOV=1", 400, "invalid_input"),
    Mistake("no moment", "GET", LOOKUP, 400, "invalid_input"),
    Mistake("half a moment", "GET", f"{LOOKUP}&majorIOV=1", 400, "invalid_input"),
    Mistake("negative moment", "GET", f"{LOOKUP}&majorIOV=-1&minorIOV=0", 400, "invalid_input"),
    Mistake("moment too large", "GET", f"{LOOKUP}&majorIOV=0&minorIOV={2**63}", 400, "invalid_input"),
    Mistake("moment in words", "GET", f"{LOOKUP}&majorIOV=now&minorIOV=0", 400, "invalid_input"),
    Mistake("unknown tag, nested", "GET", "globalTag/no-such-tag", 404, "global_tag_not_found"),
    Mistake("unknown setting", "GET", "user_settings/CDB_SECRET_KEY", 404, "setting_not_found"),
    Mistake("unknown path", "GET", "globalTagz", 404, "route_not_found"),
    Mistake("wrong method", "DELETE", "globalTags", 405, "method_not_allowed"),
    Mistake("broken JSON", "POST", "gt", 400, "invalid_json", b'{"name": "half'),
    Mistake("no name", "POST", "pt", 400, "invalid_input", b"{}"),
    Mistake("deep JSON", "POST", "pt", 400, "body_too_complex", b"[" * 100 + b"]" * 100),
    Mistake("no JSON", "POST", "pt", 415, "unsupported_media_type", b"name=a", TEXT),
    Mistake("unknown type", "DELETE", "deletePayloadType/no-such-type", 404, "payload_type_not_found"),
    Mistake("clone of nothing", "POST", "cloneGlobalTag/no-such-tag/copy", 404, "global_tag_not_found", b"null"),
)


class Misbehaving(CheckedUser):
    """Sends invalid requests; the response must be the expected error, in JSON with detail and code."""

    def job(self, calls: Calls) -> None:
        """Send one invalid request."""
        mistake = random.choice(MISTAKES)

        def fault(reply: Reply) -> str | None:
            error = reply.json
            if not isinstance(error["detail"], str) or not error["detail"]:
                return f"no detail: {error}"
            return None if error["code"] == mistake.code else f"code {error['code']}, not {mistake.code}"

        sent = {"status": mistake.status, "body": mistake.body, "headers": mistake.headers}
        calls.request(mistake.method, mistake.path, name=f"mistake: {mistake.name}", check=fault, **sent)
