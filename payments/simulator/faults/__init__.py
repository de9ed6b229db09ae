"""Faults on request: what kinds there are, which one is next, and how it looks on the wire."""
