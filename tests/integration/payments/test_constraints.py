"""Wrong money is refused by the database itself, also from psql (R41, R42). Each statement here is tried by hand."""

import itertools
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from payments.models import Account, Merchant, Payment, Payout, Receipt, Refund
from payments.models.base import Moving


@pytest.fixture
def merchant(db: None) -> Merchant:
    return Merchant.objects.create(name="m", slug="m")


def payment(merchant: Merchant, **changes: object) -> Payment:
    fields = {"order_id": "1", "amount": 100, "currency": "UAH", "source": "pm_card_visa"}
    made = Payment(merchant=merchant, key_id=uuid.uuid4(), **(fields | changes))
    made.save()
    return made


def paid(merchant: Merchant) -> Payment:
    made = payment(merchant)
    assert made.move("succeeded", gateway_reference=f"pi_{made.pk}", settled_at=made.created_at)
    return made


def refused(sql: str, *parameters: Any) -> str:
    """Return the name of the constraint that refuses a statement."""
    with pytest.raises(IntegrityError) as caught:
        _execute(sql, parameters)
    return str(caught.value.__cause__.diag.constraint_name)  # type: ignore[union-attr]


@transaction.atomic
def _execute(sql: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("amount = 0", "payments_payment_stays_itself"),
        ("currency = 'EUR'", "payments_payment_stays_itself"),
        ("key_id = gen_random_uuid()", "payments_payment_stays_itself"),
        ("status = 'paid'", "payments_payment_moves_forward"),
        ("status = 'succeeded'", "payments_payment_succeeded_is_proven"),
        (
            "status = 'succeeded', gateway_reference = 'pi_1'",
            "payments_payment_succeeded_is_proven",
        ),
        ("status = 'processing'", "payments_payment_processing_is_known"),
        ("refunded_reserved = 1", "payments_payment_refunds_counted"),
    ],
)
def test_a_pending_payment_refuses(merchant: Merchant, change: str, constraint: str) -> None:
    made = payment(merchant)
    assert refused(f"UPDATE payments_payment SET {change} WHERE id = %s", made.pk) == constraint


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("status = 'pending'", "payments_payment_moves_forward"),
        ("status = 'declined'", "payments_payment_moves_forward"),
        ("gateway_reference = 'pi_other'", "payments_payment_stays_itself"),
        ("gateway_reference = NULL", "payments_payment_stays_itself"),
        ("settled_at = NULL", "payments_payment_succeeded_is_proven"),
        ("refunded_reserved = 1", "payments_payment_refunds_counted"),
        ("refunded_amount = 1", "payments_payment_refunds_counted"),
    ],
)
def test_a_paid_payment_refuses(merchant: Merchant, change: str, constraint: str) -> None:
    made = paid(merchant)
    assert refused(f"UPDATE payments_payment SET {change} WHERE id = %s", made.pk) == constraint


PAYMENT = (
    "INSERT INTO payments_payment (id, key_id, generation, role, merchant_id, order_id, amount, currency, source,"
    " description, decline_reason, status, version, refunded_reserved, refunded_amount, guards_order)"
    " VALUES (gen_random_uuid(), %s, 1, 'main', %s, '1', %s, %s, 'pm', '', '', %s, 1, 0, 0, false)"
)


@pytest.mark.parametrize(
    ("amount", "currency", "status", "constraint"),
    [
        (0, "UAH", "pending", "payments_payment_amount_in_range"),
        (-5, "UAH", "pending", "payments_payment_amount_in_range"),
        (100_000_000, "UAH", "pending", "payments_payment_amount_in_range"),
        (1, "uah", "pending", "payments_payment_currency_known"),
        (1, "XYZ", "pending", "payments_payment_currency_known"),
        (1, "UAH", "paid", "payments_payment_status_known"),
        (1, "UAH", "succeeded", "payments_payment_succeeded_is_proven"),
    ],
)
def test_a_payment_that_means_nothing_is_refused(
    merchant: Merchant, amount: int, currency: str, status: str, constraint: str
) -> None:
    assert refused(PAYMENT, uuid.uuid4(), merchant.pk, amount, currency, status) == constraint


def test_one_key_has_one_payment_and_one_charge_one_row(merchant: Merchant) -> None:
    made = paid(merchant)
    other = payment(merchant)

    assert (
        refused(PAYMENT, made.key_id, merchant.pk, 1, "UAH", "pending")
        == "payments_payment_once_per_key"
    )
    assert (
        refused(
            "UPDATE payments_payment SET status = 'succeeded', settled_at = now(), gateway_reference = %s"
            " WHERE id = %s",
            made.gateway_reference,
            other.pk,
        )
        == "payments_payment_one_charge"
    )


REFUND = (
    "INSERT INTO payments_refund (id, key_id, generation, role, payment_id, amount, reason, refusal, status, version)"
    " VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'main', %s, %s, '', '', 'pending', 1)"
)


def test_r42_refunds_never_exceed_what_was_captured(merchant: Merchant) -> None:
    made = paid(merchant)
    first = Refund.objects.create(payment=made, key_id=uuid.uuid4(), amount=60)
    assert refused(REFUND, made.pk, 41) == "payments_payment_refunds_within_captured"
    assert refused(REFUND, payment(merchant).pk, 1) == "payments_payment_refunded_was_captured"

    assert first.move("abandoned")
    Refund.objects.create(payment=made, key_id=uuid.uuid4(), amount=100)
    again = "UPDATE payments_refund SET status = 'pending' WHERE id = %s"
    assert refused(again, first.pk) == "payments_payment_refunds_within_captured"
    assert refused("DELETE FROM payments_refund") == "payments_refund_stays"
    assert (
        refused("UPDATE payments_refund SET amount = 1 WHERE id = %s", first.pk)
        == "payments_refund_stays_itself"
    )


def test_an_account_is_never_below_zero(merchant: Merchant) -> None:
    Account.objects.create(merchant=merchant, name="a", currency="UAH", balance=10)
    assert (
        refused("UPDATE payments_account SET balance = balance - 11")
        == "payments_account_balance_not_negative"
    )


def test_a_transfer_stays_within_merchant_and_currency(merchant: Merchant) -> None:
    other = Merchant.objects.create(name="o", slug="o")
    own = Account.objects.create(merchant=merchant, name="a", currency="UAH")
    euros = Account.objects.create(merchant=merchant, name="b", currency="EUR")
    theirs = Account.objects.create(merchant=other, name="a", currency="UAH")
    sql = (
        "INSERT INTO payments_transfer (id, key_id, generation, role, merchant_id, from_account_id, to_account_id,"
        " amount, currency) VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'main', %s, %s, %s, 1, 'UAH')"
    )

    assert refused(sql, merchant.pk, own.pk, euros.pk) == "payments_transfer_to_own"
    assert refused(sql, merchant.pk, theirs.pk, own.pk) == "payments_transfer_from_own"
    assert refused(sql, merchant.pk, own.pk, own.pk) == "payments_transfer_moves_something"


@pytest.mark.parametrize("model", [Payment, Refund, Payout, Receipt])
def test_r41_the_database_and_the_code_know_the_same_paths(
    model: type[Moving], merchant: Merchant
) -> None:
    """Every pair of statuses is tried: what `PATHS` does not name, the trigger refuses."""
    statuses = {*model.PATHS, *itertools.chain(*model.PATHS.values())}
    proof = "" if model is Receipt else ", gateway_reference = 'x', settled_at = now()"
    proof += ", issued_at = now()" if model is Receipt else ""
    allowed = set()
    for old, new in itertools.permutations(sorted(statuses), 2):
        with transaction.atomic(), connection.cursor() as cursor:
            row = _row(model, merchant, old)
            try:
                with transaction.atomic():
                    cursor.execute(
                        f"UPDATE {model._meta.db_table} SET status = %s{proof} WHERE id = %s",
                        [new, row],
                    )
                allowed.add((old, new))
            except IntegrityError as error:
                name = error.__cause__.diag.constraint_name  # type: ignore[union-attr]
                assert name == f"{model._meta.db_table}_moves_forward"
            transaction.set_rollback(True)

    assert allowed == {(old, new) for new, froms in model.PATHS.items() for old in froms}


def _row(model: type[Moving], merchant: Merchant, status: str) -> uuid.UUID:
    given: dict[str, object] = {"key_id": uuid.uuid4(), "status": status}
    if model is Payment:
        given |= {"merchant": merchant, "order_id": "1", "amount": 1, "currency": "UAH"}
    elif model is Payout:
        given |= {"merchant": merchant, "amount": 1, "currency": "UAH", "destination": "acct_1"}
    else:
        given["payment"] = paid(merchant)
    if model is Refund:
        given["amount"] = 1
    if model is Receipt:
        given["issued_at"] = merchant.created_at
    elif status in ("succeeded", "processing"):
        given |= {"gateway_reference": "x", "settled_at": merchant.created_at}
    made = model(**given)
    made.save()
    row: uuid.UUID = made.pk
    return row
