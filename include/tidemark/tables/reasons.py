"""The reasons why a table does not take in an event, as quarantine and ledger show them."""

from __future__ import annotations

from collections.abc import Sequence

INCOMPLETE_IMAGE = "incomplete_image"

NULL_KEY = "null_key"

UNREADABLE_VALUE = "unreadable_value"

MISFIT = "does not fit its type: "
"""Begins the detail of an unreadable value. The name of the column follows, as the message has it."""

PARTIAL_KEY_CHANGE = "partial_key_change"


def torn_key(key: Sequence[str]) -> str:
    """Return the detail of an update of another key whose new row was not captured whole, with what helps."""
    return (
        f"the key ({', '.join(key)}) changed, and the new row was not captured whole. A complete load of the table "
        "brings it; let the source log all columns of updates"
    )


TRUNCATED = "truncated"

CHECK_FAILED = "check_failed"
"""The row fails a check with ``on_fail: quarantine``: it is not published."""

CHECK_FAILED_KEPT_GOOD = "check_failed_kept_last_good"
"""The row fails a check with ``on_fail: keep_last_good``: the row stays as it was."""
