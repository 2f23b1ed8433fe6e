"""The public keys of issuers (JWKS): where they are found, how long they are used, and how often they are fetched.

Each process keeps the keys in memory, and all processes of a host share them in files under `CDB_DATA_DIR` (shared
files), so that a restart does not need the issuer. Keys are fetched again when they are `REFRESH_SECONDS` old. If the
issuer does not respond, they are used until they are `MAX_AGE_SECONDS` old. Keys of a `keys_file` have no maximum age.

For a token with an unknown key, the shared file is read again. If it does not have the key either, the keys are
fetched, at most once in `RETRY_SECONDS`. A request waits at most `WAIT_SECONDS` for them.
"""

import contextlib
import json
import logging
import tempfile
import threading
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import jwt
from django.conf import settings

from cdb_rest.access import discovery
from cdb_rest.access.issuers import Issuer
from cdb_rest.rules.errors import InvalidTokenError

logger = logging.getLogger(__name__)
REFRESH_SECONDS = 6 * 3600
MAX_AGE_SECONDS = 2 * 24 * 3600
RETRY_SECONDS = 60
WAIT_SECONDS = 2
MAX_KEYS = 100
# The type of keys for each algorithm: a key of another type is not used.
KEY_TYPES = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}


@dataclass
class KeySet:
    """The keys of one issuer in this process.

    `fetched` is the time, in seconds since 1970, at which the issuer returned them. `tried` is the time of the last
    attempt, on the monotonic clock, and `fetch` its thread. `lock` protects these two.
    """

    issuer: Issuer
    keys: list[dict[str, Any]] = field(default_factory=list)
    fetched: float = 0.0
    tried: float = float("-inf")
    fetch: threading.Thread | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


_sets: dict[str, KeySet] = {}
_sets_lock = threading.Lock()


def find(issuer: Issuer, key_id: object, algorithm: str) -> Any:
    """The public key with this id, for PyJWT. If the id is None, the issuer's only key for the algorithm.

    `algorithm` must be one of `KEY_TYPES`. May wait for the issuer, at most `WAIT_SECONDS`. Raises `InvalidTokenError`
    if there is no such key, and `jwt.PyJWTError` if the issuer's key is malformed.
    """
    key_set = _set_of(issuer)
    key = _usable(key_set, key_id, algorithm)
    if key is None and _read_shared(key_set):
        key = _usable(key_set, key_id, algorithm)
    age = time.time() - key_set.fetched
    if key is None or age > REFRESH_SECONDS:
        # Keys that may still be used are refreshed in the background.
        fetch = _start_fetch(key_set)
        if key is None and fetch is not None:
            fetch.join(WAIT_SECONDS)
            key = _usable(key_set, key_id, algorithm)
    if key is None:
        raise InvalidTokenError(f"{issuer.name} has no key {key_id} for {algorithm}, or cannot be asked at present.")
    return jwt.PyJWK(key, algorithm=algorithm).key


def forget() -> None:
    """Forget the keys in memory; the shared files stay. Tests use it."""
    with _sets_lock:
        _sets.clear()


def _set_of(issuer: Issuer) -> KeySet:
    with _sets_lock:
        if issuer.name not in _sets:
            _sets[issuer.name] = KeySet(issuer)
            _read_shared(_sets[issuer.name])
        return _sets[issuer.name]


def _usable(key_set: KeySet, key_id: object, algorithm: str) -> dict[str, Any] | None:
    """The key; None if there is none, if several could be meant, or if the keys are too old."""
    if key_set.issuer.keys_file is None and time.time() - key_set.fetched > MAX_AGE_SECONDS:
        return None
    fitting = [
        key
        for key in key_set.keys
        if key.get("kty") == KEY_TYPES[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    ]
    if key_id is None:
        return fitting[0] if len(fitting) == 1 else None
    return next((key for key in fitting if key.get("kid") == key_id), None)


def _start_fetch(key_set: KeySet) -> threading.Thread | None:
    """The running fetch of the keys, or a new one; None if the last attempt was less than `RETRY_SECONDS` ago."""
    with key_set.lock:
        if key_set.fetch is not None and key_set.fetch.is_alive():
            return key_set.fetch
        if time.monotonic() - key_set.tried < RETRY_SECONDS:
            return None
        key_set.tried = time.monotonic()
        key_set.fetch = threading.Thread(target=_fetch, args=[key_set], daemon=True, name=f"keys-{key_set.issuer.name}")
        key_set.fetch.start()
        return key_set.fetch


def _fetch(key_set: KeySet) -> None:
    issuer = key_set.issuer
    try:
        if issuer.keys_file is not None:
            keys = _keys_in(json.loads(issuer.keys_file.read_bytes()))
        else:
            url = issuer.keys_url or discovery.endpoint(issuer, "jwks_uri")
            keys = _keys_in(discovery.fetch_json(url))
    except Exception as error:
        # After any error, requests continue with the previous keys.
        logger.warning("the keys of issuer %s can't be read: %s", issuer.name, " ".join(str(error).split()))
        return
    key_set.keys, key_set.fetched = keys, time.time()
    if issuer.keys_file is None:
        _write_shared(key_set)


def _keys_in(document: Any) -> list[dict[str, Any]]:
    """The public keys in a JWKS document. Raises `ValueError` if the document has another form."""
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError("the document has no list of keys")
    if len(keys) > MAX_KEYS:
        raise ValueError(f"the document has {len(keys):,} keys; at most {MAX_KEYS} are accepted")
    return keys


def _shared_file(issuer: Issuer) -> Path:
    """The shared file of an issuer's keys. Its name depends on `issuer` and `keys_url`, so a new URL has no old keys."""
    source = sha256(f"{issuer.issuer} {issuer.keys_url}".encode()).hexdigest()[:16]
    return Path(settings.DATA_DIR) / "issuer-keys" / f"{source}.json"


def _read_shared(key_set: KeySet) -> bool:
    """Take the keys in the shared file if they are newer. Returns whether they are. Errors of the file are ignored.

    An issuer with a `keys_file` has no shared file: one from before could have keys that were withdrawn.
    """
    if key_set.issuer.keys_file is not None:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(_shared_file(key_set.issuer).read_bytes())
        keys, fetched = _keys_in(stored), min(float(stored["fetched"]), time.time())
        if fetched > key_set.fetched:
            key_set.keys, key_set.fetched = keys, fetched
            return True
    return False


def _write_shared(key_set: KeySet) -> None:
    path = _shared_file(key_set.issuer)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as unfinished:
            json.dump({"fetched": key_set.fetched, "keys": key_set.keys}, unfinished)
        Path(unfinished.name).replace(path)
    except OSError as error:
        logger.warning("the keys of issuer %s can't be stored: %s", key_set.issuer.name, error)
