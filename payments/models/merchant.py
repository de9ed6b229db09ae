"""Who uses the service: merchants, each a tenant of its own, and their API users."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Merchant(models.Model):
    """A tenant: everything that its API users make belongs to it."""

    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=50, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["slug"]
        permissions = [("operate_payments", "Can see to payments that need a person")]

    def __str__(self) -> str:
        return self.name


class ApiUser(models.Model):
    """That a user acts for a merchant; a user acts for one only."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="api_user"
    )
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="api_users")

    class Meta:
        verbose_name = "API user"

    def __str__(self) -> str:
        return f"{self.user} for {self.merchant}"
