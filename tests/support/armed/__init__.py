"""An app for real processes: a run dies, freezes or fails where its idempotency key says so, once.

    key = "order-7~worker~after_call~kill"         in the worker, when the call has been answered
    key = "order-8~worker~after_phase1.2~stop"     before its second call
    key = "order-9~web~half_sent~kill"             with half of the answer's bytes on the wire
    key = "order-9~web~statement.5~kill"           before the fifth statement of its run

So one running deployment serves every kill point at once. The points and what is done there are the product's own
(`idempotency.faultpoints`); "half_sent" and "statement" are added here. `ARMED_HOME` names a folder that remembers
which keys have struck, in which process and when: a repeat under the same key must find the way free.
"""
