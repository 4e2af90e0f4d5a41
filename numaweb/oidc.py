"""Sign-in by an OpenID Connect provider: which of its groups means which role. Off without NUMAWEB_OIDC_URL.

The library does the protocol (authorization code, state, PKCE, checks of issuer, audience and age). Here: nobody gets
in without a mapped group, roles follow the provider at each sign-in, accounts are never matched by e-mail address.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NoReturn

import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.openid_connect import views
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponseBase
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from requests import RequestException

from numaweb import problems, refusals, roles

log = structlog.get_logger(__name__)

Page = Callable[..., HttpResponseBase]


def guarded(view: Page) -> Page:
    """The library lets a provider that does not answer, or answers with rubbish, end in an unexpected error."""

    def inner(request: HttpRequest, provider_id: str) -> HttpResponseBase:
        try:
            return view(request, provider_id)
        except (RequestException, KeyError, ValueError) as error:
            log.warning("identity provider failed", error=str(error))
            return problems.answer(
                request,
                HTTPStatus.BAD_GATEWAY,
                _("Sign-in is not possible now"),
                _("The identity provider cannot be reached or does not answer as it should."),
                _("Try again in a minute, or sign in with a local account."),
            )

    return inner


urlpatterns = [
    # By POST only: a link must not be able to sign somebody in as somebody else.
    path(
        "<str:provider_id>/login/",
        login_not_required(require_POST(guarded(views.login))),
        name="openid_connect_login",
    ),
    path(
        "<str:provider_id>/login/callback/",
        login_not_required(guarded(views.callback)),
        name="openid_connect_callback",
    ),
]


def role_of(claims: dict[str, Any]) -> str | None:
    """The highest role that the provider's groups give; None (nobody) without one that is mapped."""
    pairs = dict(pair.split("=", 1) for pair in settings.NUMAWEB_OIDC_ROLES)
    held = claims.get(settings.NUMAWEB_OIDC_GROUPS_CLAIM) or []
    names = [held] if isinstance(held, str) else [name for name in held if isinstance(name, str)]
    return max((pairs[name] for name in names if name in pairs), key=roles.NAMES.index, default=None)


def claims_of(login: SocialLogin) -> dict[str, Any]:
    """What the provider says: the ID token, and above it the fresher user information."""
    data = login.account.extra_data
    return {**(data.get("id_token") or {}), **(data.get("userinfo") or {})}


def give_role(user: User, role: str) -> None:
    user.groups.set(
        [*user.groups.exclude(name__in=roles.NAMES), Group.objects.get(name=role)],
    )
    user.is_staff = role == roles.ADMINISTRATOR
    user.save(update_fields=["is_staff"])


class Adapter(DefaultSocialAccountAdapter):
    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        role = role_of(claims_of(sociallogin))
        if role is None:
            name = str(claims_of(sociallogin).get("preferred_username", ""))
            refuse(request, name, "no group of the provider is mapped to a role")
        sociallogin.email_addresses = []  # a provider's e-mail address proves nothing about our accounts
        if sociallogin.is_existing:
            give_role(sociallogin.user, role)

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        user: User = super().save_user(request, sociallogin, form)
        give_role(user, role_of(claims_of(sociallogin)) or roles.VIEWER)
        return user

    def is_auto_signup_allowed(self, *_: Any, **__: Any) -> bool:
        return True

    def on_authentication_error(
        self, request: HttpRequest, _provider: Any, error: Any = None, exception: Any = None, **_: Any
    ) -> NoReturn:
        refuse(
            request,
            "",
            f"OpenID Connect: {error or 'failed'} {type(exception).__name__ if exception else ''}".strip(),
        )


def refuse(request: HttpRequest, name: str, reason: str) -> NoReturn:
    refusals.note(
        action="sign-in", actor=name, address=request.META.get("REMOTE_ADDR", ""), target="", detail=reason
    )
    page = problems.answer(
        request,
        403,
        _("Sign-in was refused"),
        _("The identity provider did not vouch for a role here."),
        _("Try again, or ask an administrator to map one of your groups to a role."),
    )
    raise ImmediateHttpResponse(page)
