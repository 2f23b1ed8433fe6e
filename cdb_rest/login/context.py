"""What templates need to know about the login at an identity provider."""

from django.http import HttpRequest

from cdb_rest.identity import issuers


def login_issuer(_request: HttpRequest) -> dict[str, str]:
    """A context processor: the name of the issuer where persons log in, as `login_issuer`; empty if there is none."""
    issuer = issuers.for_login()
    return {"login_issuer": issuer.name if issuer else ""}
