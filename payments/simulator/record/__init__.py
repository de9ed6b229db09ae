"""The gateway's durable record: one SQLite file that survives kill -9."""
