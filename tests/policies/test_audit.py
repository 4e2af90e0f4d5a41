"""The audit log: what it keeps, and that nobody alters it unseen."""

import threading
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from hypothesis import given
from hypothesis import strategies as st

from policies import audit, seal
from policies.models import AuditEntry, AuditHead

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def write(number: int = 3) -> list[AuditEntry]:
    return [
        audit.record(audit.Event(action=f"act {index}", actor="ada"), now=NOON) for index in range(number)
    ]


def test_it_keeps_who_when_where_what_and_the_outcome(db: None) -> None:
    audit.record(
        audit.Event(
            action="change",
            actor="ada",
            address="192.0.2.1",
            target="cluster prod",
            before={"name": "old"},
            after={"name": "new"},
            result=audit.Result.FAILED,
            detail="the database was full",
        ),
        now=NOON,
    )
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.at, entry.address, entry.action) == ("ada", NOON, "192.0.2.1", "change")
    assert (entry.before, entry.after) == ({"name": "old"}, {"name": "new"})
    assert (entry.result, entry.detail) == ("failed", "the database was full")


def test_it_numbers_and_chains_the_entries(db: None) -> None:
    first, second, third = write()
    assert [first.sequence, second.sequence, third.sequence] == [1, 2, 3]
    assert first.previous_hash == "0" * 64
    assert (second.previous_hash, third.previous_hash) == (first.hash, second.hash)
    assert audit.verify() is None


def test_it_holds_when_it_is_empty(db: None) -> None:
    assert audit.verify() is None


@pytest.mark.parametrize("field", ["actor", "address", "action", "target", "result", "detail"])
def test_it_notices_an_altered_text(db: None, field: str) -> None:
    write()
    AuditEntry.objects.filter(sequence=2).update(**{field: "x"})
    assert audit.verify() == audit.Break(2, "its content was altered after it was written")


def test_it_notices_an_altered_time_before_and_after(db: None) -> None:
    for change in ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, {"before": {"a": 1}}, {"after": 0}):
        with transaction.atomic():
            write()
            AuditEntry.objects.filter(sequence=2).update(**change)
            assert audit.verify() == audit.Break(2, "its content was altered after it was written")
            transaction.set_rollback(True)


def test_it_notices_a_removed_entry(db: None) -> None:
    write()
    AuditEntry.objects.filter(sequence=2).delete()
    assert audit.verify() == audit.Break(2, "an entry is missing: 3 follows 1")


def test_it_notices_a_cut_off_end(db: None) -> None:
    write()
    AuditEntry.objects.filter(sequence=3).delete()
    assert audit.verify() == audit.Break(3, "the log ends here but should reach entry 3")


def test_it_notices_a_removed_log(db: None) -> None:
    write()
    AuditEntry.objects.all().delete()
    assert audit.verify() == audit.Break(1, "the log ends here but should reach entry 3")


def test_it_notices_an_entry_put_in_between_with_a_right_hash_of_its_own(db: None) -> None:
    write(2)
    AuditEntry.objects.filter(sequence=2).update(sequence=3)
    AuditHead.objects.update(sequence=3)
    planted = AuditEntry(sequence=2, at=NOON, action="planted", result="done", previous_hash=audit.START)
    planted.hash = audit.digest(planted)
    planted.save()
    assert audit.verify() == audit.Break(2, "it does not follow the entry before it")


def test_it_is_undone_with_what_it_records(db: None) -> None:
    write(1)
    with transaction.atomic():
        write(1)
        transaction.set_rollback(True)
    assert AuditEntry.objects.count() == 1
    assert write(1)[0].sequence == 2
    assert audit.verify() is None


def test_the_database_refuses_to_alter_or_remove_an_entry(db: None) -> None:
    write()
    seal.put(connection)
    with pytest.raises(DatabaseError, match="cannot be altered or removed"), transaction.atomic():
        AuditEntry.objects.update(actor=F("address"))
    with pytest.raises(DatabaseError, match="cannot be altered or removed"), transaction.atomic():
        AuditEntry.objects.filter(sequence=2).delete()
    write(1)
    seal.lift(connection)
    assert audit.verify() is None


def test_the_command_proves_the_log(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    write()
    call_command("audit", "--verify")
    assert "3 entries, unbroken" in capsys.readouterr().out
    AuditEntry.objects.filter(sequence=1).update(actor="eve")
    with pytest.raises(CommandError, match="broken at entry 1: its content was altered"):
        call_command("audit", "--verify")


def test_it_gives_each_of_many_writers_its_own_number(transactional_db: None) -> None:
    def write_some() -> None:
        try:
            for _ in range(5):
                audit.record(audit.Event(action="act"))
        finally:
            connection.close()

    threads = [threading.Thread(target=write_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(AuditEntry.objects.order_by("sequence").values_list("sequence", flat=True)) == list(
        range(1, 21)
    )
    assert audit.verify() is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.django_db
@given(before=VALUES, text=st.text(max_size=300))
def test_it_verifies_whatever_was_written(before: object, text: str) -> None:
    with transaction.atomic():
        audit.record(
            audit.Event(action="x", actor=text, target=text, detail=text, before=before, after={text: before})
        )
        assert audit.verify() is None
        transaction.set_rollback(True)
