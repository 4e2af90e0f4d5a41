"""Affinity policies: what is wanted of which nodes, where they stand, and the forms for it. Nothing on any node changes here: a rollout does that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.views.base import MENU_PATH, ClusterPage, Crumb
from monitoring.views.saving import Table
from numacore.change import wish as wishes
from numacore.change.wish import Wish
from policies import audit, selectors
from policies.forms import PoolForm, WishForm
from policies.models import Policy, Pool
from policies.services import policy as services
from policies.services.policy import PolicyError, Target
from policies.services.who import Who
from policies.views import columns
from policies.words import policy as words

EDIT = "policies.change_policy"
PER_PAGE = 50
TITLE = gettext_lazy("Affinity policies")


class PolicyPage(ClusterPage):
    """A page that everybody reads and administrators use."""

    http_method_names = ["get", "head", "post"]
    title = TITLE

    def crumbs(self) -> list[Crumb]:
        path = [Crumb(label) for label in MENU_PATH]
        if self.title == TITLE:
            return [*path, Crumb(TITLE)]
        return [*path, Crumb(TITLE, self.address("policies")), Crumb(self.title)]

    def who(self) -> Who:
        return Who(audit.actor(self.request), self.request.META.get("REMOTE_ADDR", ""))

    def may(self) -> bool:
        return self.request.user.has_perm(EDIT)

    def allow(self) -> None:
        if not self.may():
            raise PermissionDenied

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may=self.may(), **kwargs)

    def back(self) -> HttpResponse:
        return HttpResponseRedirect(self.address("policies"))


class Policies(PolicyPage):
    """What is wanted, by target; the four switches in words; and every node with what counts for it."""

    template_name = "policies/policies.html"

    def tables(self) -> Mapping[str, Table]:
        return {
            "policies": Table(columns.TARGETS, self.targets),
            "nodes": Table(columns.STANDING, lambda: self.shown(selectors.standing(self.cluster))),
        }

    def targets(self) -> list[selectors.TargetRow]:
        return selectors.targets(self.cluster, selectors.standing(self.cluster))

    @property
    def wanted(self) -> str:
        """The state whose nodes are shown; empty = all."""
        asked = self.request.GET.get("show", "")
        return asked if asked in selectors.STATES else ""

    def shown(self, standing: list[selectors.Standing]) -> list[selectors.Standing]:
        return [each for each in standing if self.wanted in ("", each.state)]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        standing = selectors.standing(self.cluster)
        counts = selectors.counts(standing)
        wanted = self.wanted
        changed, since = selectors.changed_nodes(self.cluster)
        return super().get_context_data(
            switches=words.SWITCHES,
            distance=words.DISTANCE,
            targets=selectors.targets(self.cluster, standing),
            overlaps=selectors.frozen_pools(self.cluster),
            counts=counts,
            picks=[(state, words.STATES[state], number) for state, number in counts.items() if number],
            nodes=Paginator(self.shown(standing), PER_PAGE).get_page(self.request.GET.get("page")),
            show=wanted,
            total=len(standing),
            active=selectors.active_rollout(self.cluster),
            changed=changed,
            since=since,
            **kwargs,
        )


class EditPolicy(PolicyPage):
    """One target's policy as a form, with the versions that it had."""

    template_name = "policies/policy.html"

    def named(self) -> tuple[str, ...]:
        target = self.target()
        return (*super().named(), *filter(None, (target.level, target.name)))

    def tables(self) -> Mapping[str, Table]:
        found = self.found()
        return {"versions": Table(columns.VERSIONS, lambda: found.versions.all() if found else ())}

    def target(self) -> Target:
        return Target(self.kwargs["level"], self.kwargs.get("name", ""))

    @property
    def title(self) -> str:  # type: ignore[override]
        return words.title(self.target().level, self.target().name)

    def found(self) -> Policy | None:
        """None = nobody has written one for this target. Raises Http404 where there is no such target."""
        target = self.target()
        found = selectors.policy_of(self.cluster, target.level, target.name)
        if found is None and not selectors.is_target(self.cluster, target.level, target.name):
            raise Http404(words.no_target(target.level, target.name))
        return found

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = self.found()
        form = kwargs.pop("form", None) or WishForm(initial=self.initial(found), before=wish_of(found))
        versions = list(found.versions.all()[:PER_PAGE]) if found else []
        target = self.target()
        too_old = selectors.without_distance(self.cluster, target.level, target.name)
        # Who has it wanted already may take it back.
        form.fields["prefer_closest"].disabled = bool(too_old) and not form["prefer_closest"].value()
        return super().get_context_data(
            policy=found,
            form=form,
            switches=words.SWITCHES,
            distance=words.DISTANCE,
            no_distance=words.without_distance(too_old) if too_old else "",
            versions=versions,
            **kwargs,
        )

    def initial(self, found: Policy | None) -> dict[str, Any]:
        if found is None:
            return {"topology_policy": self.request.GET.get("policy", ""), "on": True}
        wish = wish_of(found)
        assert wish is not None, "a policy has one"
        return WishForm.initial_of(wish, found.on, found.version)

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        self.allow()
        form = WishForm(request.POST, before=wish_of(self.found()))
        if not form.is_valid():
            return self.again(form)
        given = form.cleaned_data
        try:
            services.save(
                self.cluster,
                self.target(),
                form.wish(),
                given["on"],
                self.who(),
                timezone.now(),
                given["version"],
            )
        except PolicyError as error:
            return self.refused(form, error)
        messages.success(
            request, _("Written down. No node has changed by that: preview it, then roll it out.")
        )
        return self.back()

    def again(self, form: WishForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form, cluster=self.slug))

    def refused(self, form: WishForm, error: PolicyError) -> HttpResponse:
        """The form with what was filled in. Who comes second keeps it beside the newest version, and may write it over that one."""
        text, remedy = words.obstacle(error.code, error.cause)
        if error.code == "changed" and (newest := self.found()):
            remedy = _(
                "What you filled in is still here, and what they wrote is the first of the versions below. Save again to put yours in its place."
            )
            given = self.request.POST.copy()
            given["version"] = str(newest.version)
            form = WishForm(given, before=wish_of(newest))
        messages.error(self.request, f"{text} {remedy}")
        for fault in error.faults:
            field = fault.field if fault.field in form.fields else None
            form.add_error(field, words.fault(fault))
        return self.again(form)


def wish_of(policy: Policy | None) -> Wish | None:
    return wishes.read(policy.wish) if policy else None


class EditPool(PolicyPage):
    """A pool of nodes: made, given another selector, or taken away."""

    template_name = "policies/pool.html"

    @property
    def title(self) -> str:  # type: ignore[override]
        name = self.kwargs.get("name", "")
        return f"{_('Node pool')} {name}" if name else _("New node pool")

    def found(self) -> Pool | None:
        name = self.kwargs.get("name")
        found = Pool.objects.filter(cluster=self.cluster, name=name).first() if name else None
        if name and found is None:
            raise Http404(words.no_target("pool", name))
        return found

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = self.found()
        form = kwargs.pop("form", None)
        if form is None:
            known = (
                {"name": found.name, "selector": found.selector, "version": found.version} if found else {}
            )
            form = PoolForm(initial=known)
        inside = sorted(selectors.members(self.cluster, [found])[found.name]) if found else []
        return super().get_context_data(pool=found, form=form, inside=inside, **kwargs)

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        self.allow()
        found = self.found()
        if found and request.POST.get("do") == "remove":
            return self.removed(found)
        posted = request.POST.copy()
        if found:
            posted["name"] = found.name
        form = PoolForm(posted)
        if not form.is_valid():
            return self.again(form)
        given = form.cleaned_data
        seen = given["version"] if found else None
        try:
            services.save_pool(
                self.cluster, given["name"], given["selector"], self.who(), timezone.now(), seen
            )
        except PolicyError as error:
            return self.refused(form, error)
        return HttpResponseRedirect(
            reverse("policy_pool", kwargs={"cluster": self.slug, "name": given["name"]})
        )

    def removed(self, pool: Pool) -> HttpResponse:
        try:
            services.remove_pool(pool, self.who())
        except PolicyError as error:
            messages.error(self.request, " ".join(words.obstacle(error.code, error.cause)))
            return HttpResponseRedirect(self.request.path)
        return self.back()

    def again(self, form: PoolForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form, cluster=self.slug))

    def refused(self, form: PoolForm, error: PolicyError) -> HttpResponse:
        if error.code == "changed":
            messages.error(self.request, " ".join(words.obstacle(error.code)))
            return HttpResponseRedirect(self.request.path)
        form.add_error(
            error.field if error.field in form.fields else None,
            " ".join(words.obstacle(error.code, error.cause)),
        )
        for each in error.overlaps:
            form.add_error("selector", words.overlap(each.pools, each.nodes))
        return self.again(form)
