"""A look at a key with a snapshot of its own, from within the statement that claims it."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION idempotency_key_exists(the_key text, the_scope text, the_operation text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM idempotency_key WHERE key = the_key AND scope = the_scope AND operation = the_operation
    );
END $$;
"""

BACKWARD = "DROP FUNCTION idempotency_key_exists(text, text, text);"


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0004_alarms_are_handled")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
