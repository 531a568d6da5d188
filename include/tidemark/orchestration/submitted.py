"""What a submitted job leaves for the task that submitted it: why data was held back, or what went wrong."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow.sdk.exceptions import AirflowException, AirflowFailException

_NO_RETRY: Mapping[int, str] = {
    1: "data held back: nothing of it is published. See the log above and `tidemark status`",
    2: "configuration: a file or a setting must be changed. See the log above",
}
"""Exit statuses of a job that another attempt would give again."""


def place_for_problems() -> Path:
    """Return a file that is not there yet, in a folder that only this user can read."""
    return Path(tempfile.mkdtemp(prefix="tidemark-")) / "problems.json"


def problems_at(place: Path | None) -> list[str]:
    """Return what a job left in the file; nothing if there is no file, or none that can be read."""
    if place is None:
        return []
    try:
        return [str(problem) for problem in json.loads(place.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        return []


def remove_place(place: Path | None) -> None:
    """Remove the file, if the job left one, and its folder."""
    if place is None:
        return
    place.unlink(missing_ok=True)
    if place.parent.is_dir():
        place.parent.rmdir()


def failure(task: str, status: int | None, problems: Sequence[str]) -> AirflowException | None:
    """Return the error of a task whose job ended with a status; None: what the hook raised says all that is known.

    Args:
        task: what the job was to do, for people.
        status: exit status of the job; None where it is not known.
        problems: what the job left.
    """
    reason = _NO_RETRY.get(status or 0)
    if reason is None and not problems:
        return None
    kind = AirflowFailException if reason else AirflowException
    return kind(f"{task}: {'; '.join(problems) or reason}")
