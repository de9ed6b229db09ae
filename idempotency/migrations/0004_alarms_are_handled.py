"""An alarm can be marked as handled, and a received message run again."""

import django.db.models.fields.json
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table may be large, and it is written to meanwhile.
    atomic = False

    dependencies = [("idempotency", "0003_events_are_append_only")]

    operations = [
        migrations.AlterModelOptions(
            name="event",
            options={"permissions": [("handle_event", "Can mark an alarm as handled")]},
        ),
        migrations.AlterModelOptions(
            name="key",
            options={
                "permissions": [
                    ("view_payload", "Can see stored answers and payloads"),
                    ("lookup_key", "Can ask the gateway now"),
                    ("settle_key", "Can settle a key by hand"),
                    ("rerun_message", "Can run a received message again"),
                    ("export_keys", "Can export keys"),
                    ("control_breaker", "Can force a circuit breaker"),
                ],
                "verbose_name": "idempotency key",
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    """
                    CREATE UNIQUE INDEX CONCURRENTLY idempotency_event_handled_once
                    ON idempotency_event ((detail ->> 'handles')) WHERE detail ? 'handles'
                    """,
                    "DROP INDEX CONCURRENTLY idempotency_event_handled_once",
                )
            ],
            state_operations=[
                migrations.AddConstraint(
                    model_name="event",
                    constraint=models.UniqueConstraint(
                        django.db.models.fields.json.KeyTextTransform("handles", "detail"),
                        condition=models.Q(("detail__has_key", "handles")),
                        name="idempotency_event_handled_once",
                    ),
                ),
            ],
        ),
    ]
