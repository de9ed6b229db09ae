"""An app for real worker processes: its operations leave marks, sleep, or kill who runs them."""
