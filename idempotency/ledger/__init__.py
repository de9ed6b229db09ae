"""The ledger: the only writer of keys. A host needs `Claim`; the rest is read in the order acquire, phases, journal,
settlement.
"""

from idempotency.ledger.claim import Claim
from idempotency.ledger.queries import names_of, states

__all__ = ["Claim", "names_of", "states"]
