"""Unknown and stuck keys: ask "did it happen?", then settle (R36–R39).

    lapse      a lease that ran out makes its key unknown                                     batch
    look up    ask the other side about each step that may have been applied                  single
    prove      what the answers prove of the journal they were asked for                      findings
    settle     finish as the view would have · give its verdict · release · look again later  ending
    watch      a settled key that one of its senders may still contradict                     watch
    by hand    what a person may decide, and what not                                         byhand

No transaction is open while the other side is asked.
"""

from idempotency.reconciliation.batch import run
from idempotency.reconciliation.byhand import ask_now, settle_by_hand
from idempotency.reconciliation.report import Refused, Report
from idempotency.reconciliation.single import reconcile

__all__ = ["Refused", "Report", "ask_now", "reconcile", "run", "settle_by_hand"]
