"""Django's management package of payments."""
