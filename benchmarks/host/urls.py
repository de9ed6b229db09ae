"""The one address: whatever protects it, the work is the same."""

from django.conf import settings
from django.urls import path

urlpatterns = [path("orders/", settings.VARIANT.view())]
