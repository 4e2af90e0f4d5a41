"""The project's own rows: tokens of programs, and which users still have a generated password."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ApiToken(models.Model):
    """A program's key to the REST API. Only its hash is stored; numaweb.tokens makes and checks it."""

    class Scope(models.TextChoices):
        READ = "read", _("read")
        OPERATE = "operate", _("operate")
        ADMIN = "admin", _("administer")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(_("name"), max_length=100, help_text=_("What uses this token."))
    prefix = models.CharField(_("begins with"), max_length=16, editable=False)
    hash = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(_("scope"), max_length=16, choices=Scope.choices, default=Scope.READ)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    expires = models.DateTimeField(_("expires"), null=True, blank=True, help_text=_("Empty: never."))
    last_used = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)

    class Meta:
        ordering = ["user__username", "name"]
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"


class FirstPassword(models.Model):
    """Stands for a user as long as the password is the generated one; every page then offers to change it."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="first_password")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user_id)
