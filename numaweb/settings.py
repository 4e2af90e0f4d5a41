"""All settings of the project, from the environment (numaweb/env.py); docs/settings.md describes every variable.

Without any variable this is local mode: SQLite, no Redis, a generated key, everything below var/. With
NUMAWEB_DATABASE_URL and NUMAWEB_REDIS_URL it is distributed mode. Rules between settings are in checks.py.
"""

from pathlib import Path
from typing import Any

import django_stubs_ext
from django.utils.translation import gettext_lazy as _

from numaweb import connections, headers, logs
from numaweb.env import Env, EnvError

django_stubs_ext.monkeypatch()  # Django's generic classes, such as ListView[Node], can be written at run time
env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = env.path("NUMAWEB_STATE_DIR", BASE_DIR / "var")

# Where things are ------------------------------------------------------------------------------------------------
DATABASE_URL = env.url("NUMAWEB_DATABASE_URL", "", schemes=("postgresql", "postgres", "sqlite"))
REDIS_URL = env.url("NUMAWEB_REDIS_URL", "", schemes=("redis", "rediss"))
NUMAWEB_DISTRIBUTED = bool(DATABASE_URL or REDIS_URL)
NUMAWEB_REDIS_LIVE_URL = connections.redis_database(REDIS_URL, 2) if REDIS_URL else ""
DATABASES = {
    "default": connections.database(
        DATABASE_URL, STATE_DIR / "numaweb.sqlite3", env.integer("NUMAWEB_DATABASE_POOL", 16, low=1, high=500)
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = connections.caches(REDIS_URL)
CHANNEL_LAYERS = connections.channel_layers(NUMAWEB_REDIS_LIVE_URL)

# Who may speak to us ---------------------------------------------------------------------------------------------
DEBUG = False
SECRET_KEY = env.secret("NUMAWEB_SECRET_KEY", "")
if not SECRET_KEY and NUMAWEB_DISTRIBUTED:
    raise EnvError(
        "NUMAWEB_SECRET_KEY is not set: with a database or Redis address every process needs the same key. "
        "Set it, or NUMAWEB_SECRET_KEY_FILE, to at least 50 random characters."
    )
SECRET_KEY = SECRET_KEY or connections.local_key(STATE_DIR / "secret.key")
# Keys that were in use before: what they signed or encrypted still counts, and nothing new is made with them.
SECRET_KEY_FALLBACKS = env.secret("NUMAWEB_SECRET_KEY_FALLBACKS", "").split()
NUMAWEB_TLS = env.flag("NUMAWEB_TLS", False)
ALLOWED_HOSTS = env.items("NUMAWEB_ALLOWED_HOSTS", ["*"])
CSRF_TRUSTED_ORIGINS = env.items("NUMAWEB_TRUSTED_ORIGINS", [])
# Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed (addresses or networks); asgi.py reads it.
NUMAWEB_TRUSTED_PROXIES = env.items("NUMAWEB_TRUSTED_PROXIES", [])
NUMAWEB_PORT = env.integer("NUMAWEB_PORT", 30881, low=1, high=65535)
NUMAWEB_LISTEN = env.text("NUMAWEB_LISTEN", "0.0.0.0")  # noqa: S104 - the documents' address is http://IP:30881
NUMAWEB_COMMIT = env.text("NUMAWEB_COMMIT", "")
# Touched every few seconds by workers, beat and the watcher while they work, for probes; see alive.py.
NUMAWEB_ALIVE_FILE = env.text("NUMAWEB_ALIVE_FILE", "")
# What /metrics asks for as a bearer token; without one it is open, as the other probes are.
NUMAWEB_METRICS_TOKEN = env.secret("NUMAWEB_METRICS_TOKEN", "")

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = env.integer("NUMAWEB_SESSION_IDLE", 8 * 3600, low=60)  # seconds without a request
NUMAWEB_SESSION_LONGEST = env.integer("NUMAWEB_SESSION_LONGEST", 7 * 24 * 3600, low=60)  # since sign-in
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = NUMAWEB_TLS
# Cookies are shared by all ports of a host, so their names must be ours alone.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "numaweb_session", "numaweb_csrf"
CSRF_FAILURE_VIEW = "numaweb.problems.forged"
SECURE_SSL_REDIRECT = NUMAWEB_TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if NUMAWEB_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = NUMAWEB_TLS
# A browser ignores this header on plain http and complains about it in its console.
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin" if NUMAWEB_TLS else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = headers.CONTENT_SECURITY_POLICY
PERMISSIONS_POLICY = headers.PERMISSIONS_POLICY
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000

# Who somebody is -------------------------------------------------------------------------------------------------
NUMAWEB_ROLES = ("viewer", "operator", "administrator")  # from the least to the most; see roles.py
NUMAWEB_ADMIN_USER = env.text("NUMAWEB_ADMIN_USER", "admin")
NUMAWEB_ADMIN_PASSWORD = env.secret("NUMAWEB_ADMIN_PASSWORD", "")
AUTHENTICATION_BACKENDS = ["numaweb.lockout.LockoutBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "login", "/", "login"
AXES_HANDLER = "numaweb.lockout.AuditedHandler"
AXES_FAILURE_LIMIT = env.integer("NUMAWEB_LOCKOUT_FAILURES", 5, low=1)
AXES_COOLOFF_TIME = env.number("NUMAWEB_LOCKOUT_MINUTES", 15.0, low=0.01) / 60  # axes counts in hours
AXES_LOCKOUT_PARAMETERS = "numaweb.lockout.parameters"
AXES_LOCKOUT_CALLABLE = "numaweb.lockout.locked_out"
AXES_CLIENT_IP_CALLABLE = "numaweb.lockout.address"
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True  # the audit log has it
AXES_VERBOSE = AXES_ENABLE_ADMIN = False
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "password", "csrfmiddlewaretoken"]

OIDC_URL = env.url("NUMAWEB_OIDC_URL", "", schemes=("https", "http"))
NUMAWEB_OIDC = bool(OIDC_URL)
NUMAWEB_OIDC_NAME = env.text("NUMAWEB_OIDC_NAME", "OpenID Connect")
NUMAWEB_OIDC_GROUPS_CLAIM = env.text("NUMAWEB_OIDC_GROUPS_CLAIM", "groups")
# "group=role" pairs; whoever is in none of the groups may not sign in.
NUMAWEB_OIDC_ROLES = env.items("NUMAWEB_OIDC_ROLES", [])
NUMAWEB_OIDC_CLIENT_ID = env.text("NUMAWEB_OIDC_CLIENT_ID", "")
SOCIALACCOUNT_ADAPTER = "numaweb.oidc.Adapter"
SOCIALACCOUNT_ONLY = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": env.items("NUMAWEB_OIDC_SCOPES", ["openid", "profile", "email", "groups"]),
        "APPS": [
            {
                "provider_id": "oidc",
                "name": NUMAWEB_OIDC_NAME,
                "client_id": NUMAWEB_OIDC_CLIENT_ID,
                "secret": env.secret("NUMAWEB_OIDC_CLIENT_SECRET", ""),
                "settings": {"server_url": OIDC_URL, "token_auth_method": "client_secret_basic"},
            }
        ],
    }
}
ACCOUNT_EMAIL_VERIFICATION = "none"

# What is plugged in ----------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "policies",
    "monitoring",
    "numaweb.apps.AdministrationConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "channels",
    "csp",
    "django_celery_beat",
    "django_filters",
    "django_htmx",
    "django_tables2",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
    "numaweb",  # after auth and axes, whose administration it replaces
]
MIDDLEWARE = [
    "numaweb.middleware.RequestLog",
    "numaweb.probes.Probes",
    "django.middleware.security.SecurityMiddleware",
    "numaweb.middleware.StaticFiles",
    "numaweb.middleware.NoStore",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "csp.middleware.CSPMiddleware",
    # Before CommonMiddleware, whose own answers (a wrong host, a missing slash) then carry it, too.
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "numaweb.middleware.SessionLimits",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]
if NUMAWEB_OIDC:
    INSTALLED_APPS += ["allauth", "allauth.account", "allauth.socialaccount"]
    INSTALLED_APPS += ["allauth.socialaccount.providers.openid_connect"]
    MIDDLEWARE += ["allauth.account.middleware.AccountMiddleware"]
    AUTHENTICATION_BACKENDS += ["allauth.account.auth_backends.AuthenticationBackend"]

ROOT_URLCONF = "numaweb.urls"
ASGI_APPLICATION = "numaweb.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "numaweb.context.page",
            ]
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
INSTALLED_APPS += ["django.forms"]

# Words, time and files -------------------------------------------------------------------------------------------
USE_I18N = USE_TZ = True
LANGUAGE_CODE = env.text("NUMAWEB_LANGUAGE", "en", choices=("en", "zh-hans"))
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LANGUAGE_COOKIE_NAME = "numaweb_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.text("NUMAWEB_TIME_ZONE", "UTC")
STATIC_URL = "/static/"
STATICFILES_DIRS = [directory for directory in [BASE_DIR / "static" / "dist"] if directory.is_dir()]
# A built image collects its files once and names them by their hash; a checkout serves what `make assets` built.
STATIC_HASHED = env.flag("NUMAWEB_STATIC_HASHED", False)
STATIC_ROOT = env.path("NUMAWEB_STATIC_ROOT", BASE_DIR / "static" / "collected") if STATIC_HASHED else None
STATIC_STORE = "whitenoise.storage.CompressedManifestStaticFilesStorage"
PLAIN_STORE = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": STATIC_STORE if STATIC_HASHED else PLAIN_STORE},
}
# Unhashed files are looked up anew at each request: `make assets` may replace them while we run.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not STATIC_HASHED
WHITENOISE_ALLOW_ALL_ORIGINS = False

# REST ------------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "numaweb.access.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["numaweb.access.RoleAndScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["numaweb.access.PerCaller"],
    "DEFAULT_THROTTLE_RATES": {"caller": env.text("NUMAWEB_API_RATE", "1200/min")},
    "EXCEPTION_HANDLER": "numaweb.problems.api_problem",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "numaweb",
    "DESCRIPTION": "NUMA placement of the containers of Kubernetes clusters.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": ["monitoring.api.document.complete"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["numaweb.access.RoleAndScope"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
}

# Collection, live pages and history: seconds, unless the name says otherwise (docs/settings.md) -------------------
NUMAWEB_COLLECT_PERIOD = env.number("NUMAWEB_COLLECT_PERIOD", 2.0, low=0.1, high=300)
NUMAWEB_COLLECT_SHIFT = env.number("NUMAWEB_COLLECT_SHIFT", 60.0, low=1, high=600)
NUMAWEB_COLLECT_SHARDS = env.integer("NUMAWEB_COLLECT_SHARDS", 1, low=1, high=256)
NUMAWEB_COLLECT_TIMEOUT = env.number("NUMAWEB_COLLECT_TIMEOUT", 2.0, low=0.1, high=60)
NUMAWEB_COLLECT_CONCURRENCY = env.integer("NUMAWEB_COLLECT_CONCURRENCY", 64, low=1, high=1024)
NUMAWEB_COLLECT_BYTES = env.integer("NUMAWEB_COLLECT_BYTES", 2 * 1024 * 1024, low=65536)
NUMAWEB_COLLECT_BACKOFF = env.number("NUMAWEB_COLLECT_BACKOFF", 30.0, low=0.1, high=3600)
NUMAWEB_COLLECT_LEASE = env.number("NUMAWEB_COLLECT_LEASE", 10.0, low=0.4, high=300)
NUMAWEB_WATCH_LEASE = env.number("NUMAWEB_WATCH_LEASE", 8.0, low=0.4, high=300)
NUMAWEB_KUBECONFIG = env.text("NUMAWEB_KUBECONFIG", "")
NUMAWEB_CLEANUP = env.flag("NUMAWEB_CLEANUP", False)
NUMAWEB_ROLLOUTS = env.flag("NUMAWEB_ROLLOUTS", False)
NUMAWEB_NAMESPACE = env.text("NUMAWEB_NAMESPACE", "numaweb")
NUMAWEB_APPLIER_IMAGE = env.text("NUMAWEB_APPLIER_IMAGE", "numa-exporter:local")
NUMAWEB_ORDER_KEY = env.secret("NUMAWEB_ORDER_KEY", "")
NUMAWEB_PLAN_LASTS = env.number("NUMAWEB_PLAN_LASTS", 900.0, low=10, high=86400)
NUMAWEB_ROLLOUT_LOOK = env.number("NUMAWEB_ROLLOUT_LOOK", 2.0, low=0.05, high=60)
NUMAWEB_ROLLOUT_LEASE = env.number("NUMAWEB_ROLLOUT_LEASE", 30.0, low=0.4, high=300)
NUMAWEB_ROLLOUT_READY = env.number("NUMAWEB_ROLLOUT_READY", 60.0, low=0, high=3600)
NUMAWEB_ROLLOUT_GATE = env.number("NUMAWEB_ROLLOUT_GATE", 600.0, low=1, high=86400)
NUMAWEB_COLLECT_REFRESH = env.number("NUMAWEB_COLLECT_REFRESH", 30.0, low=1, high=3600)
NUMAWEB_HISTORY_STEP = env.integer("NUMAWEB_HISTORY_STEP", 10, low=1, high=60)
NUMAWEB_LIVE_TICK = env.number("NUMAWEB_LIVE_TICK", 1.0, low=0.05, high=60)
NUMAWEB_LIVE_WATCH = env.number("NUMAWEB_LIVE_WATCH", 10.0, low=0.1, high=60)
NUMAWEB_LIVE_STALL = env.number("NUMAWEB_LIVE_STALL", 8.0, low=0.1, high=600)
NUMAWEB_LIVE_SESSIONS = env.number("NUMAWEB_LIVE_SESSIONS", 4.0, low=0.1, high=5)
NUMAWEB_LIVE_RECHECK = env.number("NUMAWEB_LIVE_RECHECK", 60.0, low=0.1, high=60)
NUMAWEB_LIVE_PER_USER = env.integer("NUMAWEB_LIVE_PER_USER", 50, low=1, high=10_000)
NUMAWEB_OCCUPIED_PERCENT = env.number("NUMAWEB_OCCUPIED_PERCENT", 10.0, low=0, high=100)
NUMAWEB_PROMETHEUS_URL = env.url("NUMAWEB_PROMETHEUS_URL", "", schemes=("http", "https"))
NUMAWEB_PROMETHEUS_ALLOW = env.items("NUMAWEB_PROMETHEUS_ALLOW", [])
NUMAWEB_SIMULATED_NODES = env.integer("NUMAWEB_SIMULATED_NODES", 8, low=0, high=200)

# Notices about rollouts -------------------------------------------------------------------------------------------
MAIL = connections.mail(env.url("NUMAWEB_MAIL_URL", "", schemes=("smtp", "smtps")))
EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_SSL, EMAIL_USE_TLS = MAIL
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("NUMAWEB_MAIL_FROM", "numaweb@localhost")
NUMAWEB_NOTICE_MAIL = env.items("NUMAWEB_NOTICE_MAIL", [])
NUMAWEB_NOTICE_WEBHOOK = env.url("NUMAWEB_NOTICE_WEBHOOK", "", schemes=("https",))
NUMAWEB_NOTICE_SECRET = env.secret("NUMAWEB_NOTICE_SECRET", "")
NUMAWEB_NOTICE_CA = env.text("NUMAWEB_NOTICE_CA", "")
NUMAWEB_PUBLIC_URL = env.url("NUMAWEB_PUBLIC_URL", "", schemes=("https", "http")).rstrip("/")

# What it writes about itself -------------------------------------------------------------------------------------
# In local mode a person looks at the terminal; a line for each request would hide what matters.
LOG_LEVEL = env.text("NUMAWEB_LOG_LEVEL", "INFO" if NUMAWEB_DISTRIBUTED else "WARNING", choices=logs.LEVELS)
LOGGING = logs.configuration(LOG_LEVEL)
LOGGING_CONFIG = "numaweb.logs.configure"
NUMAWEB_ENVIRONMENT = env  # which variables were asked for, for bundle.py
