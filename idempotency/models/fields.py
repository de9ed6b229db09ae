"""How rows are named and timed."""

import os
import time
import uuid

from django.db import models


def uuid7() -> uuid.UUID:
    """Make a time-ordered UUID: new rows land at the end of the index and say nothing about how many there are.

    Source: RFC 9562 §5.7.
    """
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


class ClockTimestamp(models.Func):
    """The database's clock at this very moment, not at the transaction's start."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()


class LastPart(models.Func):
    """The last part of an address, which is the id of what it names: `7` of `/api/payments/7/`."""

    function = "substring"
    template = "%(function)s(%(expressions)s, '[^/]+(?=/*$)')"
    output_field = models.CharField()
