"""A whole project of somebody else's, run in processes of its own: its settings can differ in what Django reads once."""
