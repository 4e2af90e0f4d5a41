"""What a backup has to bring back: rows of every room, with secrets, and a look at all tables of a database. For tests of backups."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from monitoring import services
from monitoring.models import Endpoint, Topology
from numaweb import roles
from policies import audit
from policies.models import AuditEntry

TOKEN = "hush-token-of-an-exporter"


def fill() -> None:
    roles.ensure_groups()
    User.objects.create(username="ada", first_name='tab\t, line\n, quote " and 节点').groups.add(
        Group.objects.get(name=roles.ADMINISTRATOR)
    )
    services.ensure_cluster(
        "east", "East", "plain", [services.EndpointSpec("http://10.0.0.1:9797", token=TOKEN)]
    )
    Topology.objects.create(hash="aa", document=bytes(range(256)), cpus=8, numa_nodes=2, sockets=1)
    Session.objects.create(session_key="of-somebody", session_data="x", expire_date=timezone.now())
    for number in range(3):
        audit.record(
            audit.Event(action=f"act {number}", actor="ada", address="", target="t", result=audit.Result.DONE)
        )


def everything() -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of ours, as the database has it; sessions are not kept."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.django_table_names(only_existing=True)):
            if table == "django_session":
                continue
            names = sorted(
                each.name for each in connection.introspection.get_table_description(cursor, table)
            )
            quoted = ", ".join(map(connection.ops.quote_name, names))
            cursor.execute(f"SELECT {quoted} FROM {connection.ops.quote_name(table)}")
            rows = [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in cursor]
            found[table] = sorted(rows, key=repr)
    return found


def works() -> None:
    """What was put back goes on: secrets can be read, the audit log holds, new rows find a number."""
    assert Endpoint.objects.get().token == TOKEN
    assert audit.verify() is None
    assert AuditEntry.objects.count() == 3
    assert not Session.objects.exists()
    User.objects.create(username="new").groups.add(Group.objects.get(name=roles.VIEWER))
    services.ensure_cluster("west", "West", "plain", ["http://10.0.0.2:9797"])
    audit.record(audit.Event(action="a", actor="", address="", target="", result=audit.Result.DONE))
    assert audit.verify() is None
