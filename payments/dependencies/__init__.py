"""What a summary is nicer with and never needs: exchange rates and offers.

Each source has a guard of its own, with a breaker, a bulkhead and 150 ms; what it said last is kept for ten minutes.
Which rung an answer stands on is told with it (R30).
"""

from payments.dependencies.sources import Dependencies, configured

__all__ = ["Dependencies", "configured"]
