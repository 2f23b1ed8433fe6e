"""Security headers, public settings and checks, in this process."""

import json

from django.conf import settings as configuration

from cdb import checks, security
from cdb.variables import VARIABLES
from cdb_rest.access import issuers


def test_forms_are_trusted_from_the_names_that_clients_use():
    assert security.trusted_origins(["cdb.example.org", ".example.org", "*"]) == [
        "https://cdb.example.org",
        "https://*.example.org",
    ]


def test_a_file_of_issuers_and_its_secrets_are_closed_to_other_accounts(tmp_path, settings):
    file, secret = tmp_path / "issuers.toml", tmp_path / "secret"
    secret.write_text("a shared secret of at least 32 bytes")
    file.write_text('[old]\nalgorithms = ["HS256"]\nsecret_file = "secret"\n')
    settings.CDB_ISSUERS_FILE = str(file)
    issuers.configured.cache_clear()
    try:
        file.chmod(0o666)
        secret.chmod(0o644)
        assert [(warning.id, warning.hint) for warning in checks.check_issuers()] == [
            ("cdb.W005", f"chmod go-w {file}"),
            ("cdb.W006", f"chmod 600 {secret}"),
        ]
        file.chmod(0o644)
        secret.chmod(0o600)
        assert checks.check_issuers() == []
    finally:
        issuers.configured.cache_clear()


def test_no_setting_with_a_secret_is_public():
    public = {variable.name for variable in VARIABLES if variable.public}
    assert not public & {"CDB_SECRET_KEY", "DATABASE_URL", "CDB_DATA_DIR", "CDB_ALLOWED_HOSTS", "CDB_ENV_FILE"}
    assert "secret" not in json.dumps(configuration.CDB_PUBLIC_SETTINGS, default=str).lower()
