"""Why an event takes no part in a table: the reasons that quarantine and ledger show."""

from __future__ import annotations

INCOMPLETE_IMAGE = "incomplete_image"

NULL_KEY = "null_key"

UNREADABLE_VALUE = "unreadable_value"

MISFIT = "does not fit its type: "
"""Begins the detail of an unreadable value; the name of its column follows, as the message has it."""

PARTIAL_KEY_CHANGE = "partial_key_change"

TRUNCATED = "truncated"
