"""Users with a UUID, each of a tenant that has one too."""

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models


class Tenant(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)

    class Meta:
        app_label = "site"

    def __str__(self) -> str:
        return str(self.id)


class Member(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    tenant = models.ForeignKey(Tenant, models.PROTECT, null=True)

    class Meta:
        app_label = "site"


class Order(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    owner = models.ForeignKey(Member, models.PROTECT)

    class Meta:
        app_label = "site"

    def __str__(self) -> str:
        return str(self.id)
