"""Login of persons at an identity provider (OpenID Connect), with mozilla-django-oidc."""
