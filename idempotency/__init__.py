"""An idempotency-key ledger for Django REST Framework: a key is claimed, the work runs, the key is settled."""
