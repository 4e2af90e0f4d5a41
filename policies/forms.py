"""What people fill in: a policy's wish, and a pool of nodes. What contradicts itself is found in `numacore.change.wish`, not here."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.utils.translation import gettext_lazy as _

from numacore.change import wish as wishes
from numacore.change.wish import Wish
from policies.words.policy import SWITCHES

LEAVE = ("", _("leave it as it is"))
INPUT = {"class": "form-control form-control-sm"}
SELECT = {"class": "form-select form-select-sm"}
CHECK = {"class": "form-check-input"}


class WishForm(forms.Form):
    """A wish, field by field; an empty one leaves the node's setting as it is."""

    on = forms.BooleanField(label=_("Switched on"), required=False, widget=forms.CheckboxInput(CHECK))
    topology_policy = forms.ChoiceField(
        label=_("Topology policy"),
        choices=[LEAVE, *((each.policy, each.policy) for each in SWITCHES)],
        required=False,
        widget=forms.RadioSelect(CHECK),
    )
    prefer_closest = forms.BooleanField(
        label=_("Optimal NUMA distance"), required=False, widget=forms.CheckboxInput(CHECK)
    )
    scope = forms.ChoiceField(
        label=_("Aligned is"),
        choices=[LEAVE, ("container", _("each container")), ("pod", _("the whole pod"))],
        required=False,
        widget=forms.Select(SELECT),
    )
    max_allowable_numa_nodes = forms.IntegerField(
        label=_("NUMA nodes at most"),
        help_text=_("Only for servers with more than 8; each doubles the kubelet's work for a pod."),
        required=False,
        min_value=8,
        max_value=64,
        widget=forms.NumberInput(INPUT),
    )
    cpu_policy = forms.ChoiceField(
        label=_("CPU manager"),
        choices=[LEAVE, ("static", "static"), ("none", "none")],
        help_text=_("Left alone it becomes static with every topology policy but none: without it nothing is pinned."),
        required=False,
        widget=forms.Select(SELECT),
    )  # fmt: skip
    cpu_options = forms.MultipleChoiceField(
        label=_("Options of the CPU manager"),
        choices=[(each, each) for each in wishes.CPU_OPTIONS],
        required=False,
        widget=forms.CheckboxSelectMultiple(CHECK),
    )
    reserved_cpus = forms.CharField(
        label=_("Reserved CPUs"),
        help_text=_("A list such as 0,32; instead of the amounts beside it. Nothing that is reserved now is taken away."),
        required=False,
        max_length=1000,
        widget=forms.TextInput(INPUT),
    )  # fmt: skip
    system_reserved_cpu = forms.CharField(
        label=_("CPU reserved for the system"),
        help_text=_("Default 500m, where less is reserved."),
        required=False,
        max_length=20,
        widget=forms.TextInput(INPUT),
    )
    kube_reserved_cpu = forms.CharField(
        label=_("CPU reserved for Kubernetes"),
        help_text=_("Default 500m, where less is reserved."),
        required=False,
        max_length=20,
        widget=forms.TextInput(INPUT),
    )
    memory_policy = forms.ChoiceField(
        label=_("Memory manager"),
        choices=[LEAVE, ("Static", "Static"), ("None", "None")],
        required=False,
        widget=forms.Select(SELECT),
    )
    reserved_memory = forms.ChoiceField(
        label=_("Reserved memory lies"),
        choices=[
            LEAVE,
            ("even", _("evenly on all NUMA nodes")),
            ("first", _("on the first NUMA node")),
        ],
        required=False,
        widget=forms.Select(SELECT),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def wish(self) -> Wish:
        """What the fields say; `prefer_closest` is only said where a topology policy is."""
        given: dict[str, Any] = {
            name: value
            for name, value in self.cleaned_data.items()
            if name not in ("on", "version") and value
        }
        if options := given.pop("cpu_options", ()):
            given["cpu_options"] = dict.fromkeys(options, True)
        if given.get("topology_policy"):
            given["prefer_closest"] = bool(self.cleaned_data["prefer_closest"])
        return msgspec.convert(given, Wish)

    @classmethod
    def initial_of(cls, wish: Wish, on: bool, version: int | None) -> dict[str, Any]:
        given = msgspec.to_builtins(wish)
        given["cpu_options"] = [name for name, chosen in wish.cpu_options.items() if chosen]
        return {**given, "on": on, "version": version}


class PoolForm(forms.Form):
    """A pool: its name is for life, for pages and the audit log call it so."""

    name = forms.SlugField(label=_("Name"), max_length=63, widget=forms.TextInput(INPUT))
    selector = forms.CharField(
        label=_("Label selector"),
        help_text=_("As Kubernetes writes them: numa=fast,zone in (a, b),!legacy"),
        max_length=1000,
        widget=forms.TextInput(INPUT),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
