"""Signing in and out, and changing the password: Django's own views with what this project adds to them."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, views
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from numaweb import lockout
from numaweb.models import FirstPassword
from policies import audit


@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class SignIn(views.LoginView):
    """The form; Django rotates the session's key, and follows `next` only to our own pages."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        lockout.recognise_if_marked(request, request.POST.get("username", ""))
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        lockout.remember(response, form.get_user().get_username())
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            oidc=settings.NUMAWEB_OIDC, oidc_name=settings.NUMAWEB_OIDC_NAME, **kwargs
        )


class SignOut(views.LogoutView):
    """Only by POST; the axes handler writes the audit entry."""


class ChangePasswordForm(PasswordChangeForm):
    """Wrong old passwords count as at the sign-in: whoever found a session open cannot guess on and on."""

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        password = str(self.cleaned_data["old_password"])
        if authenticate(self.request, username=self.user.get_username(), password=password) is None:
            raise ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return password


@method_decorator(sensitive_post_parameters(), name="dispatch")
class ChangePassword(views.PasswordChangeView):
    """One's own password; the other sessions of the same user end with the old one."""

    form_class = ChangePasswordForm
    success_url = reverse_lazy("password_change")
    template_name = "registration/password_change.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        lockout.recognise_if_marked(request, request.user.get_username())
        return super().post(request, *args, **kwargs)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        FirstPassword.objects.filter(user=form.user).delete()
        audit.record_request(self.request, "change password", target=form.user.get_username())
        messages.success(self.request, _("Your password has been changed."))
        return response


def has_first_password(request: HttpRequest) -> bool:
    """Whether the generated password is still in use, so that every page offers to change it."""
    return FirstPassword.objects.filter(user=request.user.pk).exists()
