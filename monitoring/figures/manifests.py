"""Sentences for what is wrong with a manifest: faults that stop it from being read, and findings of the workload linter."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.figures import verdicts
from monitoring.figures.sentences import Form, Said
from numacore.lint import Finding
from numacore.manifest import Fault

_TYPE = gettext_lazy("Compare it with the documentation of this kind; often an indent is wrong.")
_QUANTITY = gettext_lazy("Write a quantity such as 500m, 4Gi or 2.")

FAULTS: dict[str, Form] = {
    "empty": (gettext_lazy("There is nothing in it."), gettext_lazy("Paste a manifest, or fill in the form.")),
    "too-long": (
        gettext_lazy("It has %(found)s characters; at most %(most)s are read."),
        gettext_lazy("Paste only the workloads; ConfigMaps and the like do not matter here."),
    ),
    "not-yaml": (
        gettext_lazy("It is neither YAML nor JSON, at line %(line)s, column %(column)s: %(problem)s"),
        gettext_lazy("Correct that line; tabs may not indent in YAML."),
    ),
    "too-deep": (
        gettext_lazy("More than %(most)s levels in one another, at line %(line)s."),
        gettext_lazy("No pod needs so many; correct the indents."),
    ),
    "too-many-aliases": (
        gettext_lazy("Far too many aliases (*name), at line %(line)s."),
        gettext_lazy("Write out what they stand for."),
    ),
    "too-many-nodes": (
        gettext_lazy("With every alias written out it has more than %(most)s entries."),
        gettext_lazy("Write out what the aliases stand for, and paste only the workloads."),
    ),
    "duplicate-key": (
        gettext_lazy("The key “%(key)s” stands twice in the same mapping, again at line %(line)s."),
        gettext_lazy("Remove one of the two."),
    ),
    "too-many-documents": (
        gettext_lazy("More than %(most)s documents."),
        gettext_lazy("Paste fewer at a time."),
    ),
    "no-pods": (
        gettext_lazy("No document makes pods."),
        gettext_lazy("Kinds that make pods: %(kinds)s, or a pod template alone."),
    ),
    "no-kind": (
        gettext_lazy("The document has no kind."),
        gettext_lazy("Add kind and apiVersion, or paste a pod template with spec.containers."),
    ),
    "not-a-mapping": (gettext_lazy("This should be a mapping of fields, and is %(found)s."), _TYPE),
    "not-a-list": (gettext_lazy("This should be a list, and is %(found)s."), _TYPE),
    "not-a-text": (
        gettext_lazy("This should be a text, and is %(found)s."),
        gettext_lazy("Put it between quotation marks."),
    ),
    "not-a-count": (
        gettext_lazy("This should be a whole number, 0 or more, and is %(found)s."),
        gettext_lazy("Write a whole number without quotation marks."),
    ),
    "no-containers": (gettext_lazy("The pod has no containers."), gettext_lazy("Add at least one container.")),
    "too-many-containers": (
        gettext_lazy("%(found)s containers; at most %(most)s are judged."),
        gettext_lazy("Leave some out."),
    ),
    "no-name": (gettext_lazy("The container has no name."), gettext_lazy("Give it a name.")),
    "duplicate-name": (
        gettext_lazy("Another container of this pod is called “%(name)s” already."),
        gettext_lazy("Give it another name."),
    ),
    "needs-limit": (
        gettext_lazy("%(resource)s needs a limit, because it cannot be overcommitted."),
        gettext_lazy("Set a limit that equals the request."),
    ),
    "above-limit": (
        gettext_lazy("The request %(request)s is above the limit %(limit)s."),
        gettext_lazy("Lower the request or raise the limit."),
    ),
    "not-the-limit": (
        gettext_lazy("The request %(request)s is not the limit %(limit)s, and this resource cannot be overcommitted."),
        gettext_lazy("Make them equal."),
    ),
    "no-quantity": (gettext_lazy("%(found)s is no quantity."), _QUANTITY),
    "negative": (gettext_lazy("%(found)s is below 0."), _QUANTITY),
    "no-tasks": (gettext_lazy("The Volcano job has no tasks."), gettext_lazy("Add at least one task.")),
}  # fmt: skip

_EQUAL = gettext_lazy("Give every container CPU and memory limits that equal its requests.")
_WHOLE = gettext_lazy("Ask for a whole number of CPUs, as request and as limit.")

FINDINGS: dict[str, Form] = {
    "policy-misplaced": (
        gettext_lazy("The policy annotation %(policy)s stands on the workload, where nobody reads it."),
        gettext_lazy("Move it to the pods: %(field)s."),
    ),
    "policy-case": (
        gettext_lazy("The policy “%(policy)s” is written otherwise than anybody reads it; no node will match."),
        gettext_lazy("Write %(meant)s."),
    ),
    "policy-unknown": (
        gettext_lazy("There is no policy “%(policy)s”; no node will match."),
        gettext_lazy("Choose one of %(policies)s."),
    ),
    "scheduler-blind": (
        gettext_lazy("The pods ask for the policy %(policy)s, but %(scheduler)s does not read it."),
        gettext_lazy("Set schedulerName to one that reads it: %(schedulers)s."),
    ),
    "not-guaranteed-no-limit": (
        gettext_lazy(
            "The pods ask for the policy %(policy)s, but are not Guaranteed: there is no limit for %(resource)s here. They get no CPUs of their own."
        ),
        _EQUAL,
    ),
    "not-guaranteed-unequal": (
        gettext_lazy(
            "The pods ask for the policy %(policy)s, but are not Guaranteed: the request %(request)s for %(resource)s is not the limit "
            "%(limit)s. They get no CPUs of their own."
        ),
        _EQUAL,
    ),
    "cpu-zero": (gettext_lazy("%(owner)s asks for no CPU and gets none of its own."), _WHOLE),
    "cpu-fraction": (
        gettext_lazy("%(owner)s asks for %(cpus)s CPUs, which is no whole number: it runs on the shared CPUs."),
        _WHOLE,
    ),
    "sidecar-fraction": (
        gettext_lazy(
            "The sidecar (%(owner)s) asks for %(cpus)s CPUs, which is no whole number: it runs on the shared CPUs beside "
            "containers that own theirs, and with scope pod its share is aligned with nothing."
        ),
        _WHOLE,
    ),
    "larger-than-node": (
        gettext_lazy("A pod asks for %(asked)s %(resource)s; the largest node has %(most)s to give."),
        gettext_lazy("Ask for less, or split the work among more pods."),
    ),
    "larger-than-numa": (
        gettext_lazy("%(owner)s asks for %(asked)s %(resource)s; the largest NUMA node has %(most)s to give."),
        gettext_lazy("Ask for less, or let the pod reach over several NUMA nodes (best-effort)."),
    ),
    "hugepages-nowhere": (
        gettext_lazy("%(owner)s asks for %(resource)s, and no node has any."),
        gettext_lazy("Choose a size that nodes have, or set up such pages on the nodes."),
    ),
}  # fmt: skip


def fault(of: Fault) -> Said:
    """What is wrong with a field of a manifest, and what to do."""
    return verdicts.said(FAULTS, of.reason.code, of.reason.values)


def place(of: Fault) -> str:
    """Where it is: the document and the path of the field."""
    number = _("document %(number)s") % {"number": of.document}
    return f"{number}: {of.field}" if of.field else number


def finding(of: Finding) -> Said:
    """What the linter found, and what to do."""
    return verdicts.said(FINDINGS, of.reason.code, of.reason.values)
