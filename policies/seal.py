"""Database triggers that refuse to alter or remove audit entries, for SQLite and PostgreSQL.

The migration sets them. `lift` exists for whoever must empty a database on purpose, such as a test's clean-up.
"""

from django.db.backends.base.base import BaseDatabaseWrapper

REFUSAL = "audit entries cannot be altered or removed"

SQLITE_SET = [
    f"""CREATE TRIGGER IF NOT EXISTS policies_auditentry_no_{event.lower()}
        BEFORE {event} ON policies_auditentry BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"""
    for event in ("UPDATE", "DELETE")
]
SQLITE_LIFT = [f"DROP TRIGGER IF EXISTS policies_auditentry_no_{event}" for event in ("update", "delete")]

POSTGRES_SET = [
    f"""CREATE OR REPLACE FUNCTION policies_auditentry_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; END $$""",
    "DROP TRIGGER IF EXISTS policies_auditentry_seal ON policies_auditentry",
    "DROP TRIGGER IF EXISTS policies_auditentry_seal_all ON policies_auditentry",
    """CREATE TRIGGER policies_auditentry_seal BEFORE UPDATE OR DELETE ON policies_auditentry
        FOR EACH ROW EXECUTE FUNCTION policies_auditentry_sealed()""",
    """CREATE TRIGGER policies_auditentry_seal_all BEFORE TRUNCATE ON policies_auditentry
        FOR EACH STATEMENT EXECUTE FUNCTION policies_auditentry_sealed()""",
]
POSTGRES_LIFT = [
    "DROP TRIGGER IF EXISTS policies_auditentry_seal ON policies_auditentry",
    "DROP TRIGGER IF EXISTS policies_auditentry_seal_all ON policies_auditentry",
]

STATEMENTS = {"sqlite": (SQLITE_SET, SQLITE_LIFT), "postgresql": (POSTGRES_SET, POSTGRES_LIFT)}


def put(connection: BaseDatabaseWrapper) -> None:
    run(connection, STATEMENTS[connection.vendor][0])


def lift(connection: BaseDatabaseWrapper) -> None:
    run(connection, STATEMENTS[connection.vendor][1])


def run(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
