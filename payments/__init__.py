"""The payments application: charges, refunds, payouts and transfers on top of the ledger."""
