"""The project as a Django app: it has models (tokens), commands and checks. Imported by Django at its start."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.core import checks as django_checks
from django.utils.translation import gettext_lazy as _

from numaweb import celery, checks

# The Celery app must exist in every process that enqueues a task, so that `shared_task` finds it.
celery_app = celery.app


class NumawebConfig(AppConfig):
    name = "numaweb"
    verbose_name = _("REST API")
    default = True

    def ready(self) -> None:
        for check in checks.ALL:
            django_checks.register(check, django_checks.Tags.security)


class AdministrationConfig(admin_apps.AdminConfig):
    """Django's admin with our audited site as `django.contrib.admin.site`."""

    default = False
    default_site = "numaweb.administration.AuditedSite"
