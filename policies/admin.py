"""Pools and policies in the administration: to look at. They are changed on their pages, where a change is checked and versioned."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.urls import reverse

from policies.models import Policy, PolicyVersion, Pool


class Looked:
    """Nothing of it can be changed here."""

    def has_add_permission(self, _request: HttpRequest, _parent: object = None) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _object: object = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _object: object = None) -> bool:
        return False


@admin.register(Pool)
class PoolAdmin(Looked, admin.ModelAdmin[Pool]):
    list_display = ("name", "cluster", "selector", "changed", "changed_by")
    list_filter = ("cluster",)
    search_fields = ("name", "selector")

    def view_on_site(self, obj: models.Model) -> str:
        assert isinstance(obj, Pool)
        return reverse("policy_pool", kwargs={"cluster": obj.cluster.slug, "name": obj.name})


class Versions(Looked, admin.TabularInline[PolicyVersion, Policy]):
    model = PolicyVersion
    fields = ("version", "at", "by", "on", "wish")
    extra = 0


@admin.register(Policy)
class PolicyAdmin(Looked, admin.ModelAdmin[Policy]):
    list_display = ("__str__", "cluster", "on", "wanted", "version", "changed", "changed_by")
    list_filter = ("cluster", "level", "on")
    search_fields = ("node_name", "pool__name")
    list_select_related = ("cluster", "pool")
    inlines = (Versions,)

    @admin.display(description=PolicyVersion._meta.get_field("wish").verbose_name)
    def wanted(self, policy: Policy) -> str:
        return ", ".join(f"{name}: {value}" for name, value in policy.wish.items()) or "–"

    def view_on_site(self, obj: models.Model) -> str:
        assert isinstance(obj, Policy)
        named: dict[str, Any] = {"cluster": obj.cluster.slug}
        if obj.level == Policy.Level.CLUSTER:
            return reverse("policy_cluster", kwargs=named)
        return reverse("policy", kwargs={**named, "level": obj.level, "name": obj.target})
