"""Lets the database itself refuse to alter or remove audit entries (policies.seal)."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from policies import seal


def put(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    seal.put(editor.connection)


def lift(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    seal.lift(editor.connection)


class Migration(migrations.Migration):
    dependencies = [("policies", "0001_initial")]
    operations = [migrations.RunPython(put, lift)]
