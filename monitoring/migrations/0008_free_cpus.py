"""How many CPUs each NUMA node still has to give away, so that the overview knows what fits on one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0007_join_and_keep")]

    operations = [
        migrations.AddField(
            "node",
            "free_cpus",
            models.JSONField(blank=True, null=True, verbose_name="free CPUs by NUMA node"),
        )
    ]
