"""An app whose jobs are done by one of several queues: one row each."""
