"""Who may do what at the REST API: tokens or sessions, roles, scopes and rates. Named in the settings of its framework.

A request needs both: the user's role must allow it, and the token's scope must reach. So a token never has more
rights than its owner, and may have fewer.
"""

from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from redis import RedisError
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from numaweb import refusals, tokens
from numaweb.models import ApiToken

KEYWORD = b"bearer"
REACH = {ApiToken.Scope.READ: 0, ApiToken.Scope.OPERATE: 1, ApiToken.Scope.ADMIN: 2}
READ_PERMISSION = "monitoring.view_cluster"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer numaweb_...`"""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != KEYWORD:
            return None
        token = tokens.find(parts[1].decode("latin-1"), timezone.now()) if len(parts) == 2 else None
        if token is None:
            self.note(request, parts[-1].decode("latin-1"))
            raise AuthenticationFailed(_("The token is unknown, expired or its owner is not active."))
        return token.user, token

    def note(self, request: Request, secret: str) -> None:
        """An expired token is recognised by its beginning, which is all that may be written down."""
        refusals.note(
            action="wrong token",
            actor="",
            address=request.META.get("REMOTE_ADDR", ""),
            target=f"{request.method} {request.path}",
            detail=f"{secret[: tokens.SHOWN]}..." if secret.startswith(tokens.MARK) else "",
        )

    def authenticate_header(self, _request: Request) -> str:
        return 'Bearer realm="numaweb"'


class RoleAndScope(BasePermission):
    """The default of every API view. A view that changes something names `required_permission` and `required_scope`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        safe = request.method in SAFE_METHODS
        permission = READ_PERMISSION if safe else getattr(view, "required_permission", None)
        scope = ApiToken.Scope.READ if safe else getattr(view, "required_scope", ApiToken.Scope.ADMIN)
        if permission is None or not reaches(request.auth, scope):
            return False
        return bool(request.user.has_perm(permission))


def reaches(token: object, scope: str) -> bool:
    """Whether a token's scope covers another; a session has no token and no such limit."""
    return (
        not isinstance(token, ApiToken) or REACH[ApiToken.Scope(token.scope)] >= REACH[ApiToken.Scope(scope)]
    )


class PerCaller(SimpleRateThrottle):
    """Limits each token, or each user, or the address of a stranger."""

    scope = "caller"

    def allow_request(self, request: Request, view: Any) -> bool:
        try:
            return bool(super().allow_request(request, view))
        except RedisError:  # a cache that is away must not take the API with it
            return True

    def get_rate(self) -> str:
        rates: Any = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
        return str(rates["caller"])

    def get_cache_key(self, request: Request, _view: Any) -> str:
        if isinstance(request.auth, ApiToken):
            return f"throttle-token-{request.auth.pk}"
        if request.user.is_authenticated:
            return f"throttle-user-{request.user.pk}"
        return f"throttle-address-{request.META.get('REMOTE_ADDR', '')}"
