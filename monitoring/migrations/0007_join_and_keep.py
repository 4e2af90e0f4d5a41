"""Containers and pods are joined by the uid that the kubelet uses; failures keep what was asked for; how long events and failures stay."""

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models import F


def known_by_their_own(apps: Any, _schema_editor: Any) -> None:
    """Until the watcher lists them anew. Mirrors of static pods are few."""
    apps.get_model("monitoring", "Pod").objects.update(kubelet_uid=F("uid"))


def bounded(name: str, default: int, text: str) -> "models.PositiveIntegerField[int, int]":
    return models.PositiveIntegerField(
        default=default,
        help_text=text,
        validators=[MinValueValidator(1), MaxValueValidator(3660)],
        verbose_name=name,
    )


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0006_kubelet_port")]

    operations = [
        migrations.AddField(
            "container",
            "told_by_api",
            models.CharField(blank=True, max_length=64, verbose_name="told by the API server"),
        ),
        migrations.AddField("failure", "asked", models.JSONField(blank=True, null=True)),
        migrations.AddField(
            "pod",
            "kubelet_uid",
            models.CharField(blank=True, max_length=64, verbose_name="uid on its node"),
        ),
        migrations.AddField("pod", "running", models.JSONField(default=dict)),
        migrations.AddField(
            "settings",
            "event_days",
            bounded(
                "days of the clusters' events",
                14,
                "Events of Kubernetes that concern NUMA are kept this long; the API server itself forgets them after an hour.",
            ),
        ),
        migrations.AddField(
            "settings",
            "failure_days",
            bounded(
                "days of failed admissions",
                90,
                "A line of refused pods is kept this long after its newest pod, unless one of them is still there.",
            ),
        ),
        migrations.RunPython(known_by_their_own, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex("pod", models.Index(fields=["kubelet_uid"], name="pod_of_kubelet")),
    ]
