"""What a submitted job leaves for the task that submitted it: why data was held back, or what went wrong."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from airflow.sdk.exceptions import AirflowException, AirflowFailException

_HELD_BACK, _MISCONFIGURED = 1, 2
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

    A job that holds data back leaves the reason. Without one, 1 is the status of a spark-submit that failed before its
    job began, or, in deploy mode ``cluster``, whatever the job ended with: another attempt may succeed.

    Args:
        task: what the job was to do, for people.
        status: exit status of the job; None where it is not known.
        problems: what the job left.
    """
    if status == _MISCONFIGURED and not problems:
        problems = ["configuration: a file or a setting must be changed. See the log above"]
    if not problems:
        return None
    kind = AirflowFailException if status in {_HELD_BACK, _MISCONFIGURED} else AirflowException
    return kind(f"{task}: {'; '.join(problems)}")
