"""What no column constraint can say, said by triggers and composite foreign keys.

Each raises under a constraint's name, as a CHECK would.
"""

from django.db import migrations

PATHS = {
    "payment": [
        ("not_charged", "pending"),
        ("pending", "processing"),
        ("not_charged", "processing"),
        ("pending", "succeeded"),
        ("processing", "succeeded"),
        ("not_charged", "succeeded"),
        ("declined", "succeeded"),
        ("action_required", "succeeded"),
        ("pending", "declined"),
        ("processing", "declined"),
        ("action_required", "declined"),
        ("pending", "action_required"),
        ("processing", "action_required"),
        ("pending", "not_charged"),
    ],
    "movement": [
        ("abandoned", "pending"),
        ("pending", "processing"),
        ("abandoned", "processing"),
        ("pending", "succeeded"),
        ("processing", "succeeded"),
        ("refused", "succeeded"),
        ("abandoned", "succeeded"),
        ("pending", "refused"),
        ("processing", "refused"),
        ("pending", "abandoned"),
    ],
    "receipt": [
        ("abandoned", "pending"),
        ("pending", "issued"),
        ("abandoned", "issued"),
        ("pending", "abandoned"),
    ],
}
FIXED = {
    "payment": ["key_id", "generation", "role", "merchant_id", "amount", "currency", "source"],
    "refund": ["key_id", "generation", "role", "payment_id", "amount"],
    "payout": ["key_id", "generation", "role", "merchant_id", "amount", "currency", "destination"],
    "receipt": ["key_id", "generation", "role", "payment_id"],
}


# Only the trigger of the refunds below may count them: it is one level deeper than a statement of anybody's.
COUNTED = """
            IF (NEW.refunded_reserved, NEW.refunded_amount) IS DISTINCT FROM (OLD.refunded_reserved, OLD.refunded_amount)
                    AND pg_trigger_depth() < 2 THEN
                RAISE EXCEPTION 'payment: refunds are counted by their rows' USING
                    ERRCODE = 'check_violation', CONSTRAINT = 'payments_payment_refunds_counted';
            END IF;
"""


def guard(table: str, kind: str, *, reference: bool = True, more: str = "") -> migrations.RunSQL:
    """Refuse a status that goes back (R41), and a change of what a row is about."""
    paths = ", ".join(f"('{old}', '{new}')" for old, new in PATHS[kind])
    old, new = (", ".join(f"{row}.{name}" for name in FIXED[table]) for row in ("OLD", "NEW"))
    once = "OR (OLD.gateway_reference IS NOT NULL AND NEW.gateway_reference IS DISTINCT FROM OLD.gateway_reference)"
    return migrations.RunSQL(
        f"""
        CREATE FUNCTION payments_{table}_guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN ({paths}) THEN
                RAISE EXCEPTION '{table}: % does not become %', OLD.status, NEW.status USING
                    ERRCODE = 'check_violation', CONSTRAINT = 'payments_{table}_moves_forward';
            END IF;
            IF ({old}) IS DISTINCT FROM ({new}) {once if reference else ""} THEN
                RAISE EXCEPTION '{table}: what it is about cannot be changed' USING
                    ERRCODE = 'check_violation', CONSTRAINT = 'payments_{table}_stays_itself';
            END IF;
            {more}
            RETURN NEW;
        END $$;
        CREATE TRIGGER payments_{table}_guard BEFORE UPDATE ON payments_{table}
            FOR EACH ROW EXECUTE FUNCTION payments_{table}_guard();
        """,
        f"DROP TRIGGER payments_{table}_guard ON payments_{table}; DROP FUNCTION payments_{table}_guard();",
    )


# A refund counts against its payment while it is under way or done (R42). The payment's row is locked by the UPDATE,
# so refunds of one payment are counted one after another, and its CHECK refuses the one that is too much.
REFUNDS = """
CREATE FUNCTION payments_refund_reserves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    reserved bigint := 0;
    moved bigint := 0;
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'refunds are never deleted' USING
            ERRCODE = 'check_violation', CONSTRAINT = 'payments_refund_stays';
    END IF;
    IF NEW.status IN ('pending', 'processing', 'succeeded') THEN reserved := NEW.amount; END IF;
    IF NEW.status = 'succeeded' THEN moved := NEW.amount; END IF;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.status IN ('pending', 'processing', 'succeeded') THEN reserved := reserved - OLD.amount; END IF;
        IF OLD.status = 'succeeded' THEN moved := moved - OLD.amount; END IF;
    END IF;
    IF reserved <> 0 OR moved <> 0 THEN
        UPDATE payments_payment SET
            refunded_reserved = refunded_reserved + reserved,
            refunded_amount = refunded_amount + moved,
            version = version + 1
        WHERE id = NEW.payment_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER payments_refund_reserves AFTER INSERT OR UPDATE OF status OR DELETE ON payments_refund
    FOR EACH ROW EXECUTE FUNCTION payments_refund_reserves();
"""

# Both accounts of a transfer belong to its merchant and hold its currency.
TRANSFERS = "".join(
    f"""
    ALTER TABLE payments_transfer ADD CONSTRAINT payments_transfer_{side}_own
        FOREIGN KEY ({side}_account_id, merchant_id, currency)
        REFERENCES payments_account (id, merchant_id, currency);
    """
    for side in ("from", "to")
)


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]

    operations = [
        guard("payment", "payment", more=COUNTED),
        guard("refund", "movement"),
        guard("payout", "movement"),
        guard("receipt", "receipt", reference=False),
        migrations.RunSQL(
            REFUNDS,
            "DROP TRIGGER payments_refund_reserves ON payments_refund; DROP FUNCTION payments_refund_reserves();",
        ),
        migrations.RunSQL(
            TRANSFERS,
            "ALTER TABLE payments_transfer DROP CONSTRAINT payments_transfer_from_own, "
            "DROP CONSTRAINT payments_transfer_to_own",
        ),
    ]
