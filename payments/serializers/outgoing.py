"""What goes out: the same for a view, a worker and the reconciler."""

from rest_framework import serializers

from payments.models import Account, Payment, Payout, Receipt, Refund, Transfer


class PaymentOut(serializers.ModelSerializer[Payment]):
    """A payment as its merchant sees it. While nobody knows whether it happened, its status is `unknown`."""

    status = serializers.SerializerMethodField()
    amount_refunded = serializers.IntegerField(source="refunded_amount", read_only=True)

    class Meta:
        model = Payment
        fields = [
            "id",
            "order_id",
            "amount",
            "currency",
            "status",
            "gateway_reference",
            "amount_refunded",
            "created_at",
        ]
        read_only_fields = fields

    def get_status(self, payment: Payment) -> str:
        """Return the status: `refunded` once all of it was given back."""
        whole = payment.refunded_amount == payment.amount
        return "refunded" if payment.status == "succeeded" and whole else payment.status


class AccountOut(serializers.ModelSerializer[Account]):
    """A local account."""

    class Meta:
        model = Account
        fields = ["id", "name", "currency", "balance", "created_at"]
        read_only_fields = fields


class TransferOut(serializers.ModelSerializer[Transfer]):
    """A transfer that was made."""

    class Meta:
        model = Transfer
        fields = ["id", "from_account", "to_account", "amount", "currency", "created_at"]
        read_only_fields = fields


class RefundOut(serializers.ModelSerializer[Refund]):
    """A refund as its merchant sees it."""

    class Meta:
        model = Refund
        fields = [
            "id",
            "payment",
            "amount",
            "reason",
            "status",
            "gateway_reference",
            "created_at",
        ]
        read_only_fields = fields


class PayoutOut(serializers.ModelSerializer[Payout]):
    """A payout as its merchant sees it."""

    class Meta:
        model = Payout
        fields = [
            "id",
            "amount",
            "currency",
            "destination",
            "status",
            "gateway_reference",
            "created_at",
        ]
        read_only_fields = fields


class ReceiptOut(serializers.ModelSerializer[Receipt]):
    """A receipt as its merchant sees it."""

    class Meta:
        model = Receipt
        fields = ["id", "payment", "email", "text", "status", "issued_at", "created_at"]
        read_only_fields = fields
