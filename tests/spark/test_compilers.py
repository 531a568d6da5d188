"""Which compilers the JVM of a run has: about how many rows there are decides it, for who opens the session first."""

from __future__ import annotations

import msgspec
import pytest

from tidemark.spark import session, spread
from tidemark.spark.java import QUICK_COMPILER

OPTIONS = "spark.driver.extraJavaOptions"

Opened = list[bool]
"""For each Spark that was started, whether it has the quick compiler alone."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Let no Spark be started, but noted."""
    found: Opened = []

    def note(_remote: str | None, *, is_quick: bool) -> object:
        found.append(is_quick)
        return object()

    monkeypatch.setattr(session, "_sessions", {})
    monkeypatch.setattr(session, "_open", note)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return found


@pytest.mark.parametrize(
    ("rows", "is_quick"), [(0, True), (999_999, True), (1_000_000, False), (50_000_000, False), (None, False)]
)
def test_few_rows_are_done_by_the_quick_compiler(opened: Opened, rows: int | None, *, is_quick: bool) -> None:
    """Many rows pay for the optimizing one, and where nobody knows there may be many."""
    session.open_session(rows)
    assert opened == [is_quick]


def test_a_jvm_keeps_its_compilers(opened: Opened) -> None:
    """The first one who opens the session decides; later ones get the same session."""
    first = session.open_session(10)
    assert session.open_session(10_000_000) is first
    assert session.open_session() is first
    assert opened == [True]


@pytest.mark.parametrize(("mebibytes", "is_quick"), [(400, True), (4000, False)])
def test_land_and_normalize_tell_it_by_their_bytes(opened: Opened, mebibytes: int, *, is_quick: bool) -> None:
    """A message of the usual size has a thousand bytes. The test ends where the work would be spread."""
    with pytest.raises(AttributeError, match="range"):
        spread.run([(None, mebibytes << 20)], bytes, msgspec.Struct)
    assert opened == [is_quick]


def test_the_options_of_a_quick_jvm() -> None:
    """They stand behind those that every JVM of Tidemark has."""
    both, quick = (session.local_settings(is_quick=is_quick) for is_quick in (False, True))
    assert quick == {**both, OPTIONS: f"{both[OPTIONS]} {QUICK_COMPILER}"}
    assert QUICK_COMPILER not in both[OPTIONS]
