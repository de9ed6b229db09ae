"""Times as the console's own pages write them: 24 hours, with seconds and the time zone.

Source: Django's documentation, "Creating custom format files".
"""

DATETIME_FORMAT = "j M Y H:i:s T"
