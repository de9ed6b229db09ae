"""Commands of payments."""
