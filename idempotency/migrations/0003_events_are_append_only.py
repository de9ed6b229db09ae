"""The audit is appended to and never changed: not by staff, not by a superuser, not by this application."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION idempotency_event_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'idempotency_event is append-only: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER idempotency_event_append_only BEFORE UPDATE OR DELETE ON idempotency_event
    FOR EACH ROW EXECUTE FUNCTION idempotency_event_refuse();
CREATE TRIGGER idempotency_event_no_truncate BEFORE TRUNCATE ON idempotency_event
    FOR EACH STATEMENT EXECUTE FUNCTION idempotency_event_refuse();
"""

BACKWARD = """
DROP TRIGGER idempotency_event_no_truncate ON idempotency_event;
DROP TRIGGER idempotency_event_append_only ON idempotency_event;
DROP FUNCTION idempotency_event_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0002_console")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
