"""Django's settings. What an operator may change comes from `cdb.env`; the rest is fixed here, with its reason."""

import importlib.util

from cdb import database, env, logs, security
from cdb.variables import VARIABLES

_values = env.read()

DATA_DIR = _values["CDB_DATA_DIR"]
# Off is what makes it production.
DEBUG = _values["DEBUG"]
security.check_debug()
SECRET_KEY = security.secret_key()
# This machine may always ask, if only for the service's health.
ALLOWED_HOSTS = [*_values["CDB_ALLOWED_HOSTS"], "127.0.0.1"]

ROOT_URLCONF = "cdb.urls"
WSGI_APPLICATION = "cdb.wsgi.application"
# Both spellings of each route exist; clients do not follow redirects.
APPEND_SLASH = False

INSTALLED_APPS = [
    "cdb",  # first, so that its commands take the place of others of the same name
    "cdb_rest",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "cdb_rest.middleware.observation.TimingMiddleware",
    "cdb_rest.middleware.observation.RouteMiddleware",
    "cdb_rest.middleware.observation.FailureMiddleware",
    "cdb_rest.middleware.edge.SecurityHeadersMiddleware",
    "cdb_rest.middleware.edge.EdgeMiddleware",
    "cdb_rest.middleware.edge.MetricsMiddleware",
    "django.middleware.security.SecurityMiddleware",  # with CDB_TLS: the admin by HTTPS alone
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.common.CommonMiddleware",  # the check of the host name
    "django.middleware.csrf.CsrfViewMiddleware",  # for the admin; the views of the API know no cookies and are exempt
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "cdb_rest.middleware.admin.AdminSessionMiddleware",
    "cdb_rest.middleware.admin.AdminAuthenticationMiddleware",
    "cdb_rest.middleware.admin.AdminMessageMiddleware",
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
    for name in ("UserAttributeSimilarityValidator", "CommonPasswordValidator", "NumericPasswordValidator")
] + [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    }
]

# The admin alone has sessions. A cookie of it is of no use to a script, nor to a page of another site, nor the next day.
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = "/admin/"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 8 * 3600

# Whether clients come by HTTPS, which a proxy in front takes off and says so by `X-Forwarded-Proto: https`. gunicorn believes it
# of its own machine, so Django needs no setting to know a secure request.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _values["CDB_TLS"]
# Clients of the API follow no redirects, so it is for the proxy to refuse them; browsers at the admin do.
SECURE_REDIRECT_EXEMPT = [r"^(?!admin/)"]
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if _values["CDB_TLS"] else 0
CSRF_TRUSTED_ORIGINS = security.trusted_origins(_values["CDB_ALLOWED_HOSTS"]) if _values["CDB_TLS"] else []
# `cdb_rest.http.security` has what all answers tell browsers, and this one concerns pages alone.
SECURE_CROSS_ORIGIN_OPENER_POLICY = None
# What other names of the domain do, and whether it goes into the lists that browsers come with, is not this service's to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

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
# More than a URL of 8 KB can have. A form of the admin's login with millions of them would keep a process busy for minutes.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# Every setting of cdb/variables.py, for the application, by its own name. The signing key is only Django's SECRET_KEY.
globals().update(
    {name: value for name, value in _values.items() if name.startswith("CDB_") and name != "CDB_SECRET_KEY"}
)
# Decided once, when the routes are made: where it is off, those paths are unknown ones. What the operator says wins.
CDB_STRATEGIES = DEBUG if _values["CDB_STRATEGIES"] is None else _values["CDB_STRATEGIES"]
# What `user_settings/<name>` hands out to anyone.
CDB_PUBLIC_SETTINGS = {variable.name: _values[variable.name] for variable in VARIABLES if variable.public}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["cdb_rest.api.json.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["cdb_rest.parsing.json_body.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "cdb_rest.api.json.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "cdb_rest.api.schema.RouteSchema",
    "EXCEPTION_HANDLER": "cdb_rest.api.errors.handle",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "cdb",
    "DESCRIPTION": (
        "Conditions database: which payload file is valid for each payload type, at a moment of data taking.\n\n"
        "Every success is status 200; every error is JSON with `detail` and `code`. Each path works with and without a slash at "
        "its end. The examples are for the global tag `tiny`, which `make run` creates in an empty database."
    ),
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "/favicon.ico",
    # The list of the documents at the end of the page is closed.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "defaultModelsExpandDepth": 0},
    # The order is that of the table of routes, and of the views' declarations.
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
    "PREPROCESSING_HOOKS": ["cdb_rest.api.schema.documented_endpoints"],
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "cdb_rest.api.schema.describe_groups"],
}

LOGGING = logs.configuration()

# What a developer's browser gets: the API as pages, and a toolbar that shows statements, their plans and earlier requests.
# Without DEBUG none of it is loaded.
if DEBUG:
    if importlib.util.find_spec("debug_toolbar") is None:
        raise env.ConfigurationError("DEBUG needs django-debug-toolbar, which is not installed: make setup-dev")
    INSTALLED_APPS.append("debug_toolbar")
    # Around all others but the clock: so the toolbar gets the finished page, and the page the finished answer, an error's too.
    MIDDLEWARE[1:1] = [
        "debug_toolbar.middleware.DebugToolbarMiddleware",
        "cdb_rest.middleware.browser_pages.BrowserPages",
    ]
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
        "SHOW_TOOLBAR_CALLBACK": "cdb_rest.middleware.browser_pages.is_recorded",
        # Open, it covers the buttons of the page.
        "SHOW_COLLAPSED": True,
        # How many requests the history has.
        "RESULTS_CACHE_SIZE": 50,
        # The page that a form brings is written by a script, and browsers ignore shadow roots in such a page.
        "USE_SHADOW_DOM": False,
    }
