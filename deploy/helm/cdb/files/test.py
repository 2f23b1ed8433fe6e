"""Insert a payload IOV and look it up: test.py URL NAME. NAME is that of a new global tag and a new payload type.

The script makes a token for itself, which is valid for ten minutes and for no other tag. In the end it deletes the tag and the
type, and revokes the token, also if a step fails. If one of the names is taken, it fails and leaves what has that name.
"""

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL, NAME = sys.argv[1:]
# The name of a token is never used again.
PROGRAM = f"helm-test-{time.time_ns()}"
ROW = {"payload_url": "helm/test.root", "checksum": "0", "since": [1, 0], "until": "open"}


def manage(*arguments):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def ask(method, path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = Request(
        f"{URL}/api/cdb_rest/{path}", method=method, headers=headers, data=body and json.dumps(body).encode()
    )
    try:
        with urlopen(request, timeout=60) as response:
            answer = response.read()
    except HTTPError as error:
        sys.exit(f"{method} {path}: {error.code} {error.read().decode()}")
    print(method, path, response.status, flush=True)
    return json.loads(answer)


with ExitStack() as end:
    token = manage("token", "create", "--name", PROGRAM, "--role", "manager", "--tags", NAME, "--expires", "10min")
    end.callback(manage, "token", "revoke", PROGRAM)
    ask("POST", "pt", {"name": NAME})
    end.callback(ask, "DELETE", f"deletePayloadType/{NAME}")
    ask("POST", "gt", {"name": NAME, "status": "unlocked"})
    end.callback(ask, "DELETE", f"deleteGlobalTag/{NAME}")
    ask("POST", "payload-iovs/insert", {"global_tag": NAME, "payload_type": NAME, **ROW})
    # Rows of payload type, URL, checksum and others.
    found = ask("GET", f"payloadiovs/?gtName={NAME}&majorIOV=1&minorIOV=0")
    if [row[:3] for row in found] != [[NAME, ROW["payload_url"], ROW["checksum"]]]:
        sys.exit(f"expected the row that was inserted, got {found}")
