"""Django's settings. Those that an operator may change come from `cdb.env`; the others are constants."""

import importlib.util

from cdb import database, env, logs, mail, security
from cdb.processes import machine
from cdb.variables import VARIABLES

_values = env.read()

DATA_DIR = _values["CDB_DATA_DIR"]
DEBUG = _values["DEBUG"]
security.check_contradictions()
SECRET_KEY = security.secret_key()
# Always allowed, because health checks on this machine use it.
ALLOWED_HOSTS = [*_values["CDB_ALLOWED_HOSTS"], "127.0.0.1"]

ROOT_URLCONF = "cdb.urls"
WSGI_APPLICATION = "cdb.wsgi.application"
# Both spellings of each route exist; clients do not follow redirects.
APPEND_SLASH = False

INSTALLED_APPS = [
    "cdb",  # first, so that its commands override those of the same name in other apps
    "cdb_rest",
    "cdb_web",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "cdb_rest.middleware.ObservationMiddleware",
    "cdb_web.error_pages.ErrorPageMiddleware",
    "cdb_rest.middleware.EdgeMiddleware",
    "django.middleware.security.SecurityMiddleware",  # with CDB_TLS, redirects the admin and the login to HTTPS
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.common.CommonMiddleware",  # the check of the host name
    "django.middleware.csrf.CsrfViewMiddleware",  # for the admin; the views of the API are exempt, see cdb/urls.py
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "cdb_rest.middleware.AdminMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "cdb_rest.access.issuers.login_issuer",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = ["cdb_rest.access.memory.LimitedBackend", "django.contrib.auth.backends.ModelBackend"]
if _values["CDB_ISSUERS_FILE"]:
    AUTHENTICATION_BACKENDS.append("cdb_rest.access.login.OIDCBackend")
# After a login at an identity provider.
LOGIN_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}Validator", "OPTIONS": options}
    for name, options in (
        *((name, {}) for name in ("UserAttributeSimilarity", "CommonPassword", "NumericPassword")),
        ("MinimumLength", {"min_length": 12}),
    )
]

# Scripts can't read the cookies, writes from other sites do not include them, and a session expires after 8 hours.
# A user who is logged in may also write to the API, with a CSRF token.
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/"
# "Lax": the redirect from an identity provider has to include the cookie of the session in which the login began.
# Writes from other sites never include it.
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "cdb_web.error_pages.csrf_failure"
SESSION_COOKIE_AGE = 8 * 3600

# With CDB_TLS a proxy terminates HTTPS and sends `X-Forwarded-Proto: https`.
if _values["CDB_TLS"]:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _values["CDB_TLS"]
# Only the admin and the pages with passwords, tokens and secrets are redirected to HTTPS: clients of the API do not follow
# redirects, so the proxy must reject their HTTP requests.
SECURE_REDIRECT_EXEMPT = [r"^(?!admin/|login|tokens|subscriptions)"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if _values["CDB_TLS"] else 0
CSRF_TRUSTED_ORIGINS = security.trusted_origins(_values["CDB_ALLOWED_HOSTS"]) if _values["CDB_TLS"] else []
# `cdb_rest.http.security` defines the security headers of all responses; this header only applies to HTML pages.
SECURE_CROSS_ORIGIN_OPENER_POLICY = None
# HSTS for subdomains and HSTS preloading are decisions for the whole domain, not for this service.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

DATABASES = {"default": database.settings()} | database.replica_settings()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

STATIC_URL = "/static/"
# The few static files are served from the installed packages, so that no collectstatic is necessary.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
# A browser asks again each time, so that a page never has a script of another version.
WHITENOISE_MAX_AGE = 0

# The edge middleware checks the size of bodies and responds with 413; Django would respond with 400.
DATA_UPLOAD_MAX_MEMORY_SIZE = None
# More fields than a URL of 8 KB can have. A login form with millions of fields would keep a process busy for minutes.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# Limits that no operator had to change.
CDB_STATEMENT_TIMEOUT_SECONDS, CDB_EXPORT_TIMEOUT_SECONDS, CDB_MIGRATION_LOCK_TIMEOUT_SECONDS = 300, 3600, 2
CDB_REPLICA_MAX_LAG_SECONDS, CDB_FROZEN_MAX_AGE_SECONDS, CDB_IDEMPOTENCY_HOURS = 5, 31_536_000, 24
CDB_MAX_BULK_ROWS, CDB_METRICS_MAX_TAGS = 50_000, 1000
# Each CDB_ variable is a Django setting of the same name, except those with secrets: the signing key is SECRET_KEY, and the mail
# server is in Django's own settings. CDB_OPEN_WRITES is None if it is not set: writes are closed then, but `make run` sets it for
# its servers.
globals().update(
    {
        name: value
        for name, value in _values.items()
        if name.startswith("CDB_") and name not in ("CDB_SECRET_KEY", "CDB_MAIL_URL")
    }
)
# If it is off, the strategies have no routes. A value that the operator sets takes precedence over DEBUG.
CDB_STRATEGIES = DEBUG if _values["CDB_STRATEGIES"] is None else _values["CDB_STRATEGIES"]
# About half of the memory can hold files, and a quarter of that is for these.
_affordable = machine.memory_limit_bytes() // 8
CDB_COMPILED_BYTES = _affordable if _values["CDB_COMPILED_BYTES"] is None else _values["CDB_COMPILED_BYTES"]
globals().update(mail.settings())
CDB_COMPILED_DIR = str(DATA_DIR / "compiled")
# The settings that any client can read at `user_settings/<name>`.
CDB_PUBLIC_SETTINGS = {variable.name: _values[variable.name] for variable in VARIABLES if variable.public}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["cdb_rest.api.base.authorization.RoutePermission"],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["cdb_rest.api.base.json.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["cdb_rest.api.base.json.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "cdb_rest.api.base.json.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "cdb_rest.api.schema.RouteSchema",
    "EXCEPTION_HANDLER": "cdb_rest.api.base.errors.handle",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "cdb",
    "DESCRIPTION": (
        "Conditions database: which payload file is valid for each payload type, at a moment of data taking.\n\n"
        "Every success is status 200; every error is JSON with `detail` and `code`. Each path works with and without a slash at "
        "its end. Reads of one global tag are also at `/pin/<tag>@<revision>/api/cdb_rest/`, as of that revision. The examples "
        "are for the global tag `tiny`, which `make run` creates in an empty database."
    ),
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "/favicon.ico",
    # The list of schemas at the end of the page is collapsed.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "defaultModelsExpandDepth": 0},
    # Keep the order of the route table and of the views' declarations.
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
    "PREPROCESSING_HOOKS": ["cdb_rest.api.schema.documented_endpoints"],
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "cdb_rest.api.schema.describe_groups"],
}

LOGGING = logs.configuration()

# For developers: the debug toolbar, which shows SQL statements, their plans and earlier requests. It is loaded only with DEBUG.
if DEBUG:
    if importlib.util.find_spec("debug_toolbar") is None:
        raise env.ConfigurationError("DEBUG needs django-debug-toolbar, which is not installed: make setup-dev")
    INSTALLED_APPS.append("debug_toolbar")
    # Outside all other middleware except ObservationMiddleware.
    MIDDLEWARE.insert(1, "debug_toolbar.middleware.DebugToolbarMiddleware")
    INTERNAL_IPS = ["127.0.0.1"]
    DEBUG_TOOLBAR_PANELS = [
        f"debug_toolbar.panels.{name.lower()}.{name}Panel"
        for name in ("History", "Timer", "SQL", "Request", "Headers", "Settings")
    ]
    DEBUG_TOOLBAR_CONFIG = {
        "SHOW_TOOLBAR_CALLBACK": lambda request: (
            request.META.get("REMOTE_ADDR") in INTERNAL_IPS
            and not request.path.startswith((f"/{STATIC_URL.strip('/')}/", "/favicon.ico"))
        ),
        # An expanded toolbar would cover the buttons of the page.
        "SHOW_COLLAPSED": True,
        "RESULTS_CACHE_SIZE": 50,
    }
