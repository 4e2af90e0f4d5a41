"""The administration of people and their tokens; every registration is recorded by numaweb.administration."""

from http import HTTPStatus
from typing import Any

from axes.models import AccessAttempt
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, SolarSchedule

from numaweb import tokens
from numaweb.administration import target_of
from numaweb.models import ApiToken, FirstPassword
from policies import audit

admin.site.unregister(User)
# Of the scheduler's five ways to say "when", ours needs one.
for kind in (ClockedSchedule, CrontabSchedule, SolarSchedule):
    admin.site.unregister(kind)


@admin.register(AccessAttempt)
class AccessAttemptAdmin(admin.ModelAdmin[AccessAttempt]):
    """Whoever removes an entry here lets its name and address try again."""

    list_display = ["username", "ip_address", "failures_since_start", "attempt_time"]
    search_fields = ["username", "ip_address"]
    fields = ("username", "ip_address", "user_agent", "failures_since_start", "attempt_time")
    readonly_fields = fields

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        return False


@admin.register(User)
class PersonAdmin(UserAdmin[User]):
    """Django's own, with the role where one looks for it."""

    list_display = ["username", "role", "email", "is_active", "last_login"]
    list_filter = ["groups", "is_active"]

    @admin.display(description=gettext_lazy("role"))
    def role(self, user: User) -> str:
        return ", ".join(group.name for group in user.groups.all()) or "-"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with transaction.atomic():
            response = super().user_change_password(request, *args, **kwargs)
            if request.method == "POST" and response.status_code == HTTPStatus.FOUND:
                user = User.objects.get(pk=kwargs["id"])
                FirstPassword.objects.filter(user=user).delete()
                audit.record_request(request, "set password", target=target_of(user))
        return response


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    """Tokens are made and removed, never altered; the secret is shown once, right after it was made."""

    list_display = ["name", "user", "prefix", "scope", "created", "expires", "last_used"]
    list_filter = ["scope"]
    search_fields = ["name", "user__username", "prefix"]
    fields = ["user", "name", "scope", "expires"]

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        secret = tokens.fill(obj)
        super().save_model(request, obj, form, change)
        text = _("The token of %(name)s, shown only now:") % {"name": obj.name}
        messages.warning(request, format_html("{} <code>{}</code>", text, secret))
