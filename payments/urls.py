"""Routes under /api/."""

from rest_framework.routers import SimpleRouter

from payments.views import AccountViewSet, PaymentViewSet, TransferViewSet

app_name = "payments"

router = SimpleRouter()
router.register("payments", PaymentViewSet, basename="payment")
router.register("transfers", TransferViewSet, basename="transfer")
router.register("accounts", AccountViewSet, basename="account")

urlpatterns = router.urls
