"""What rows that are made under an idempotency key have in common."""

import uuid
from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeVar

from django.db import models, router, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from idempotency.ledger import Claim
from payments.money import CURRENCIES, MAX_AMOUNT

R = TypeVar("R", bound="MadeUnderKey")

moved = Signal()
"""A row has moved to another status; sent with `row=`, in the move's transaction, which a failing receiver undoes."""


class MadeUnderKeyQuerySet(models.QuerySet[R]):
    """Finds and makes rows by the key under which they are made."""

    def under(self, claim: Claim) -> "MadeUnderKeyQuerySet[R]":
        """Narrow down to what this life of the claim's key made; read where it was written, never from a replica."""
        rows = self.using(router.db_for_write(self.model))
        return rows.filter(key_id=claim.id, generation=claim.generation)

    def made_once(self, *, claim: Claim, **fields: Any) -> tuple[R, bool]:
        """Insert the row, or find what an earlier run under the same key inserted; say whether it is new.

        The unique constraint decides, so that two runs at once make one row: never read, then insert (R43).

        Raises:
            DoesNotExist: another unique constraint refuses the row.
        """
        mine = self.model(key_id=claim.id, generation=claim.generation, **fields)
        self.bulk_create([mine], ignore_conflicts=True)
        row = self.under(claim).get(role=mine.role)
        return row, row.pk == mine.pk


class MadeUnderKey(models.Model):
    """A business row that is made once per life of a key.

    The key is kept as a plain value, not as a foreign key: keys are purged, business rows are not.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key_id = models.UUIDField(editable=False)
    generation = models.PositiveIntegerField(default=1, editable=False)
    role = models.CharField(max_length=20, default="main", editable=False)
    """Which of the rows that one handler makes this is."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects: ClassVar[MadeUnderKeyQuerySet[Any]] = MadeUnderKeyQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(
                fields=["key_id", "generation", "role"], name="%(app_label)s_%(class)s_once_per_key"
            ),
        ]


class Moving(models.Model):
    """A row with a status that only moves forward (R41): by compare-and-set here, by a trigger in the database."""

    PATHS: ClassVar[dict[str, tuple[str, ...]]] = {}
    """From which statuses each status can be reached."""

    status = models.CharField(max_length=20, default="pending")
    version = models.PositiveIntegerField(default=1, editable=False)
    """Counts the changes of the row, for writers that had to leave it unlocked meanwhile."""
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True

    def move(self, to: str, **fields: Any) -> bool:
        """Write the new status and what belongs to it, unless the row has gone further; say whether it was written.

        The instance is read again either way, so that it shows what is so.
        """
        return self._write(to, type(self)._default_manager.filter(pk=self.pk), fields)

    def move_unchanged(self, to: str, **fields: Any) -> bool:
        """Do the same, provided that the row is the very version that this instance was read at."""
        unchanged = type(self)._default_manager.filter(pk=self.pk, version=self.version)
        return self._write(to, unchanged, fields)

    def _write(self, to: str, rows: "models.QuerySet[Self]", fields: dict[str, Any]) -> bool:
        using = router.db_for_write(type(self))
        # No savepoint of its own: it costs two statements, and whoever means to go on after an error has one.
        with transaction.atomic(using=using, savepoint=False):
            wrote = rows.filter(status__in=self.PATHS[to]).update(
                status=to, version=models.F("version") + 1, updated_at=Now(), **fields
            )
            self.refresh_from_db(using=using)
            if wrote:
                moved.send(sender=type(self), row=self)
        return bool(wrote)


def amount_field() -> "models.BigIntegerField[int, int]":
    """Return a column for an amount in minor units."""
    return models.BigIntegerField()


def amount_is_positive() -> models.CheckConstraint:
    """Return the constraint that an amount is one that can be paid."""
    return models.CheckConstraint(
        condition=Q(amount__gt=0, amount__lte=MAX_AMOUNT),
        name="%(app_label)s_%(class)s_amount_in_range",
    )


def currency_is_known() -> models.CheckConstraint:
    """Return the constraint that a currency is one of ISO 4217."""
    return models.CheckConstraint(
        condition=Q(currency__in=CURRENCIES), name="%(app_label)s_%(class)s_currency_known"
    )


def status_is_known(statuses: Iterable[str]) -> models.CheckConstraint:
    """Return the constraint that a status is one that the code knows."""
    return models.CheckConstraint(
        condition=Q(status__in=sorted(statuses)), name="%(app_label)s_%(class)s_status_known"
    )
