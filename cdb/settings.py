"""Django's settings. What an operator may change comes from `cdb.env`; the rest is fixed here, with its reason."""

import contextlib
import importlib.util
import os
import secrets
import tempfile

from cdb import database, env, logs

_values = env.read()

DATA_DIR = _values["CDB_DATA_DIR"]
DEBUG = _values["DEBUG"]
# This machine may always ask, if only for the service's health.
ALLOWED_HOSTS = [*_values["CDB_ALLOWED_HOSTS"], "127.0.0.1"]

ROOT_URLCONF = "cdb.urls"
WSGI_APPLICATION = "cdb.wsgi.application"
# Both spellings of each route exist; clients do not follow redirects.
APPEND_SLASH = False

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "cdb_rest",
]

MIDDLEWARE = [
    "cdb_rest.api.timing.TimingMiddleware",
    "cdb_rest.api.route_names.RouteMiddleware",
    "cdb_rest.api.failures.FailureMiddleware",
    "cdb_rest.api.middleware.EdgeMiddleware",
    "cdb_rest.api.metrics_middleware.MetricsMiddleware",
    "django.middleware.common.CommonMiddleware",  # the check of the host name
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "cdb_rest.api.admin_middleware.AdminSessionMiddleware",
    "cdb_rest.api.admin_middleware.AdminAuthenticationMiddleware",
    "cdb_rest.api.admin_middleware.AdminMessageMiddleware",
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
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

DATABASES = {"default": database.settings()} | database.replica_settings()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

STATIC_URL = "/static/"
# The few static files are served right out of the installed packages: no collecting step to forget.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# The edge middleware holds bodies against the limit and answers 413; Django's own limit would answer 400.
DATA_UPLOAD_MAX_MEMORY_SIZE = None
# The length of a URL is bounded already.
DATA_UPLOAD_MAX_NUMBER_FIELDS = None
CDB_MAX_BODY_BYTES = _values["CDB_MAX_BODY_BYTES"]
CDB_MAX_BULK_ROWS = _values["CDB_MAX_BULK_ROWS"]
CDB_IDEMPOTENCY_HOURS = _values["CDB_IDEMPOTENCY_HOURS"]

CDB_FROZEN_MAX_AGE_SECONDS = _values["CDB_FROZEN_MAX_AGE_SECONDS"]
CDB_LOCKED_MAX_AGE_SECONDS = _values["CDB_LOCKED_MAX_AGE_SECONDS"]
CDB_UNLOCKED_MAX_AGE_SECONDS = _values["CDB_UNLOCKED_MAX_AGE_SECONDS"]

CDB_LOOKUP_TIMEOUT_SECONDS = _values["CDB_LOOKUP_TIMEOUT_SECONDS"]
CDB_STATEMENT_TIMEOUT_SECONDS = _values["CDB_STATEMENT_TIMEOUT_SECONDS"]
CDB_LOCK_TIMEOUT_SECONDS = _values["CDB_LOCK_TIMEOUT_SECONDS"]
CDB_REPLICA_MAX_LAG_SECONDS = _values["CDB_REPLICA_MAX_LAG_SECONDS"]
CDB_MAX_EXPORTS = _values["CDB_MAX_EXPORTS"]
CDB_EXPORT_TIMEOUT_SECONDS = _values["CDB_EXPORT_TIMEOUT_SECONDS"]
CDB_METRICS_MAX_TAGS = _values["CDB_METRICS_MAX_TAGS"]
CDB_MIGRATION_LOCK_TIMEOUT_SECONDS = _values["CDB_MIGRATION_LOCK_TIMEOUT_SECONDS"]

CDB_IOV_MODE = _values["CDB_IOV_MODE"]
CDB_PAYLOAD_BASE_URL = _values["CDB_PAYLOAD_BASE_URL"]
# Decided once, when the routes are made: where it is off, those paths are unknown ones.
CDB_STRATEGIES = _values["CDB_STRATEGIES"] or DEBUG
# What `user_settings/<name>` hands out to anyone.
CDB_PUBLIC_SETTINGS = {variable.name: _values[variable.name] for variable in env.VARIABLES if variable.public}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["cdb_rest.api.json.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["cdb_rest.api.json.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "cdb_rest.api.json.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "cdb_rest.api.schema.RouteSchema",
    "EXCEPTION_HANDLER": "cdb_rest.api.errors.handle",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "cdb",
    "DESCRIPTION": "Conditions database: which payload file is valid for each payload type, at a moment of data taking.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "PREPROCESSING_HOOKS": ["cdb_rest.api.schema.documented_spellings"],
}

LOGGING = logs.configuration()

# What a developer's browser gets: the API as pages, and a toolbar that shows statements, their plans and earlier requests.
# Without DEBUG none of it is loaded.
if DEBUG:
    if importlib.util.find_spec("debug_toolbar") is None:
        raise env.ConfigurationError("DEBUG needs django-debug-toolbar, which is not installed: make setup-dev")
    INSTALLED_APPS.append("debug_toolbar")
    # Around all others but the clock: so the toolbar gets the finished page, and the page the finished answer, an error's too.
    MIDDLEWARE[1:1] = ["debug_toolbar.middleware.DebugToolbarMiddleware", "cdb_rest.api.debug.BrowserPages"]
    # The address decides about nothing here, so a page offers no links that say it would.
    REST_FRAMEWORK["URL_FORMAT_OVERRIDE"] = None
    INTERNAL_IPS = ["127.0.0.1"]
    DEBUG_TOOLBAR_PANELS = [
        f"debug_toolbar.panels.{name}"
        for name in (
            "history.HistoryPanel",
            "timer.TimerPanel",
            "sql.SQLPanel",
            "request.RequestPanel",
            "headers.HeadersPanel",
            "settings.SettingsPanel",
        )
    ]
    DEBUG_TOOLBAR_CONFIG = {
        "SHOW_TOOLBAR_CALLBACK": "cdb_rest.api.debug.is_recorded",
        # How many requests the history has.
        "RESULTS_CACHE_SIZE": 50,
        # The page that a form brings is written by a script, and browsers ignore shadow roots in such a page.
        "USE_SHADOW_DOM": False,
    }


def _secret_key() -> str:
    """The configured key, or the one that this data directory keeps."""
    if _values["CDB_SECRET_KEY"]:
        return _values["CDB_SECRET_KEY"]
    file = DATA_DIR / "secret_key"
    try:
        if not file.exists():
            DATA_DIR.mkdir(parents=True, exist_ok=True)
            # Complete before it has its name, and the first of several that start together wins.
            with tempfile.NamedTemporaryFile("w", dir=DATA_DIR) as unfinished, contextlib.suppress(FileExistsError):
                unfinished.write(secrets.token_urlsafe(50))
                unfinished.flush()
                os.link(unfinished.name, file)
        return file.read_text()
    except OSError as error:
        raise env.ConfigurationError(f"can't keep a generated key ({error}); set CDB_SECRET_KEY") from error


SECRET_KEY = _secret_key()
