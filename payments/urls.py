"""Routes under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from payments.views import (
    AccountViewSet,
    EndpointViewSet,
    PaymentViewSet,
    PayoutViewSet,
    ReceiptViewSet,
    TransferViewSet,
)
from payments.webhooks import StripeWebhook

app_name = "payments"

router = SimpleRouter()
router.register("payments", PaymentViewSet, basename="payment")
router.register("payouts", PayoutViewSet, basename="payout")
router.register("receipts", ReceiptViewSet, basename="receipt")
router.register("transfers", TransferViewSet, basename="transfer")
router.register("webhook-endpoints", EndpointViewSet, basename="endpoint")
router.register("accounts", AccountViewSet, basename="account")

urlpatterns = [
    *router.urls,
    path("webhooks/stripe/", StripeWebhook.as_view(), name="stripe-webhook"),
]
