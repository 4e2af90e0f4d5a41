"""Pools, policies, rollouts and what they keep in the administration: to look at. They are changed on their pages, where a change is
checked and versioned."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from policies.models import Act, Notice, Original, Policy, PolicyVersion, Pool, Rollout, RolloutNode


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


class Notices(Looked, admin.TabularInline[Notice, Rollout]):
    model = Notice
    fields = ("channel", "event", "state", "made", "tries", "sent", "error")
    extra = 0


@admin.register(Rollout)
class RolloutAdmin(Looked, admin.ModelAdmin[Rollout]):
    """Without its plan, which may be megabytes; its page has it. Its nodes have a list of their own."""

    list_display = ("pk", "cluster", "level", "target", "state", "made", "made_by", "confirmed_by", "ended")
    list_filter = ("cluster", "state")
    search_fields = ("target", "made_by", "confirmed_by", "plan_hash")
    list_select_related = ("cluster",)
    exclude = ("plan",)
    inlines = (Notices,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rollout]:
        return super().get_queryset(request).defer("plan")

    def view_on_site(self, obj: models.Model) -> str:
        assert isinstance(obj, Rollout)
        return reverse("rollout", kwargs={"cluster": obj.cluster.slug, "rollout": obj.pk})


class Acts(Looked, admin.TabularInline[Act, RolloutNode]):
    model = Act
    fields = ("at", "kind", "subject", "epoch", "tries", "state", "ended", "said")
    extra = 0


@admin.register(RolloutNode)
class RolloutNodeAdmin(Looked, admin.ModelAdmin[RolloutNode]):
    list_display = ("name", "rollout", "batch", "step", "outcome", "cordoned", "tries", "ended")
    list_filter = ("step", "outcome")
    search_fields = ("name",)
    list_select_related = ("rollout",)
    inlines = (Acts,)


@admin.register(Original)
class OriginalAdmin(Looked, admin.ModelAdmin[Original]):
    list_display = ("node_name", "cluster", "path", "taken", "restored", "rollout")
    list_filter = ("cluster", "drop_in")
    search_fields = ("node_name", "path")
    list_select_related = ("cluster", "rollout")


@admin.register(Notice)
class NoticeAdmin(Looked, admin.ModelAdmin[Notice]):
    list_display = ("rollout", "event", "channel", "state", "made", "tries", "sent", "error")
    list_filter = ("state", "channel")
    list_select_related = ("rollout",)
