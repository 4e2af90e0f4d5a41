"""What people fill in: a policy's wish, a pool of nodes, how a rollout goes. What contradicts itself is found in `numacore.change.wish` and
`policies.plan`, not here."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.utils.translation import gettext_lazy as _

from numacore.change import wish as wishes
from numacore.change.wish import Wish
from policies import plan as plans
from policies.plan import Options, Window
from policies.words.policy import SWITCHES
from policies.words.rollout import DAYS, option_fault

LEAVE = ("", _("leave it as it is"))
SPREADS = [LEAVE, ("even", _("evenly on all NUMA nodes")), ("first", _("on the first NUMA node"))]
BY_NODE = "nodes"
"""Memory that is reserved by NUMA node, which is written by REST alone."""
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
        choices=SPREADS,
        required=False,
        widget=forms.Select(SELECT),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *given: Any, before: Wish | None = None, **more: Any) -> None:
        """`before`: the stored wish, of which the form keeps what it cannot show: an option that is switched off or left to the node, memory
        that REST reserved by NUMA node."""
        super().__init__(*given, **more)
        self._before = before or Wish(prefer_closest=False)
        if isinstance(nodes := self._before.reserved_memory, dict):
            spread = self.fields["reserved_memory"]
            assert isinstance(spread, forms.ChoiceField)
            told = ", ".join(f"{node}: {amount} Mi" for node, amount in sorted(nodes.items()))
            spread.choices = [*SPREADS, (BY_NODE, _("by NUMA node: %(amounts)s") % {"amounts": told})]

    def wish(self) -> Wish:
        """What the fields say; `prefer_closest` is only said where a topology policy is."""
        given: dict[str, Any] = {
            name: value
            for name, value in self.cleaned_data.items()
            if name not in ("on", "version") and value
        }
        off = {name: False for name, chosen in self._before.cpu_options.items() if not chosen}
        if options := off | dict.fromkeys(given.pop("cpu_options", ()), True):
            given["cpu_options"] = options
        if given.get("topology_policy"):
            left = None if self._before.prefer_closest is None else False
            given["prefer_closest"] = bool(self.cleaned_data["prefer_closest"]) or left
        if given.get("reserved_memory") == BY_NODE:
            given["reserved_memory"] = self._before.reserved_memory
        return msgspec.convert(given, Wish)

    @classmethod
    def initial_of(cls, wish: Wish, on: bool, version: int | None) -> dict[str, Any]:
        given = msgspec.to_builtins(wish)
        given["cpu_options"] = [name for name, chosen in wish.cpu_options.items() if chosen]
        if isinstance(wish.reserved_memory, dict):
            given["reserved_memory"] = BY_NODE
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


class RolloutForm(forms.Form):
    """How a rollout goes through its nodes. What contradicts itself is found in `policies.plan.faults`."""

    canary = forms.IntegerField(
        label=_("Canary"),
        help_text=_("So many nodes go first; the others wait until these have proven themselves."),
        initial=1,
        min_value=0,
        max_value=1000,
        widget=forms.NumberInput(INPUT),
    )
    batch = forms.CharField(
        label=_("Nodes in a batch"),
        help_text=_("A number, or a share such as 10%."),
        initial="1",
        max_length=7,
        widget=forms.TextInput(INPUT),
    )
    max_unavailable = forms.CharField(
        label=_("Away at once at most"),
        help_text=_("A number, or a share. Nodes that are down or cordoned already count."),
        initial="1",
        max_length=7,
        widget=forms.TextInput(INPUT),
    )
    pause_minutes = forms.IntegerField(
        label=_("Pause between batches (minutes)"),
        initial=0,
        min_value=0,
        max_value=7 * 24 * 60,
        widget=forms.NumberInput(INPUT),
    )
    drain = forms.BooleanField(
        label=_("Drain each node before"),
        help_text=_("Its pods move away first, as their disruption budgets allow; without it they stay and some may be refused after the restart."),
        initial=True,
        required=False,
        widget=forms.CheckboxInput(CHECK),
    )  # fmt: skip
    drain_minutes = forms.IntegerField(
        label=_("A drain takes at most (minutes)"),
        help_text=_("Then the node is given up, and the rollout stops."),
        initial=15,
        min_value=1,
        max_value=24 * 60,
        widget=forms.NumberInput(INPUT),
    )
    control_plane = forms.BooleanField(
        label=_("Nodes of the control plane, too"),
        help_text=_("They are left out unless you say so."),
        required=False,
        widget=forms.CheckboxInput(CHECK),
    )
    window = forms.BooleanField(
        label=_("Only in a maintenance window"),
        help_text=_("A node is begun only within it; one that is under way is brought to its end."),
        required=False,
        widget=forms.CheckboxInput(CHECK),
    )
    start = forms.CharField(
        label=_("From"),
        required=False,
        initial="01:00",
        max_length=5,
        widget=forms.TextInput({**INPUT, "placeholder": "01:00"}),
    )
    end = forms.CharField(
        label=_("Until"),
        help_text=_("Earlier than the start: on the next day."),
        required=False,
        initial="05:00",
        max_length=5,
        widget=forms.TextInput({**INPUT, "placeholder": "05:00"}),
    )
    zone = forms.CharField(label=_("Time zone"), required=False, max_length=64, widget=forms.TextInput(INPUT))
    days = forms.MultipleChoiceField(
        label=_("On"),
        choices=list(DAYS.items()),
        required=False,
        initial=list(DAYS),
        widget=forms.CheckboxSelectMultiple(CHECK),
    )

    FIELDS = {
        "pause_between": "pause_minutes",
        "drain_within": "drain_minutes",
        "window.start": "start",
        "window.end": "end",
        "window.zone": "zone",
        "window.days": "days",
    }
    """Which field shows the fault of an option that is named otherwise there."""

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not self.errors:
            for fault in plans.faults(self.options()):
                self.add_error(self.FIELDS.get(fault.field, fault.field), option_fault(fault.code))
        return given

    def options(self) -> Options:
        given = self.cleaned_data
        window = None
        if given["window"]:
            window = Window(
                start=given["start"], end=given["end"], zone=given["zone"] or "UTC", days=tuple(given["days"])
            )
        return Options(
            canary=given["canary"],
            batch=given["batch"].strip(),
            max_unavailable=given["max_unavailable"].strip(),
            pause_between=given["pause_minutes"] * 60,
            drain=given["drain"],
            drain_within=given["drain_minutes"] * 60,
            control_plane=given.get("control_plane", False),
            window=window,
        )


class RestoreForm(RolloutForm):
    """How all nodes that were changed go back: those of the control plane always come along (`control.restore_all`)."""

    control_plane = None  # type: ignore[assignment]  # so Django takes a field away
