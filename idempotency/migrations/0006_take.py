"""The lock of an identity and the second look at its key, taken together from within the statement that claims it."""

from importlib import import_module

from django.db import migrations

earlier = import_module("idempotency.migrations.0005_key_exists")

TAKE = """
CREATE FUNCTION idempotency_take(the_lock bigint, the_key text, the_scope text, the_operation text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(the_lock) THEN
        RETURN NULL;
    END IF;
    RETURN NOT EXISTS (
        SELECT FROM idempotency_key WHERE key = the_key AND scope = the_scope AND operation = the_operation
    );
END $$;
"""
FORGET = "DROP FUNCTION idempotency_take(bigint, text, text, text);"


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0005_key_exists")]

    operations = [
        migrations.RunSQL(TAKE, FORGET),
        migrations.RunSQL(earlier.BACKWARD, earlier.FORWARD),
    ]
