"""Every address: sign-in and language here, pages and REST from the rooms. Probes are in probes.py."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, include, path
from django.views.i18n import set_language

from monitoring.api import urls as api
from numaweb import guide, signin
from policies import api as policies_api
from policies import audit

handler400 = "numaweb.problems.bad_request"
handler403 = "numaweb.problems.forbidden"
handler404 = "numaweb.problems.not_found"
handler500 = "numaweb.problems.failed"

urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/login/", signin.SignIn.as_view(), name="login"),
    path("accounts/logout/", signin.SignOut.as_view(), name="logout"),
    path("accounts/password/", signin.ChangePassword.as_view(), name="password_change"),
    path("language/", login_not_required(set_language), name="set_language"),
    path("admin/", admin.site.urls),
    path("docs/", guide.Guides.as_view(), name="guides"),
    path("docs/<slug:language>/", guide.Guides.as_view(), name="guides_of_language"),
    path("docs/<slug:language>/<slug:document>/", guide.Guide.as_view(), name="guide"),
    path("", include("policies.urls")),
    path("api/v1/", include(([*api.patterns(audit.record_request), *policies_api.patterns()], "api"))),
]
if settings.NUMAWEB_OIDC:
    urlpatterns.append(path("accounts/", include("numaweb.oidc")))
urlpatterns.append(path("", include("monitoring.urls")))
