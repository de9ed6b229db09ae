"""A whole project of somebody else's, run in processes of its own: its settings may be what Django reads only once."""
