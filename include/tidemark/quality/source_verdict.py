"""What is judged in the name of a source, not of one of its tables: one verdict, with a sentence for what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tidemark.quality.verdicts import CheckResult, Verdict


class SourceResult(NamedTuple):
    """The result of one check of a source."""

    result: CheckResult
    sentences: tuple[str, ...] = ()
    """Sentences for people, where it failed."""

    @property
    def blocks(self) -> bool:
        """Whether it holds the cut back."""
        return self.result.blocks


class SourceVerdict(NamedTuple):
    """The verdict on a source, and what to report."""

    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def source_verdict(source: str, findings: Sequence[SourceResult], docs: Path) -> SourceVerdict:
    """Return the verdict on a source; none if nothing was judged. ``docs`` is the index page of the Data Docs."""
    if not findings:
        return SourceVerdict()
    results = tuple(each.result for each in findings)
    success = not any(each.blocks for each in findings)
    return SourceVerdict(
        verdicts=(Verdict(table=source, success=success, results=results, docs=docs),),
        problems=tuple(text for each in findings if each.blocks for text in each.sentences),
        warnings=tuple(text for each in findings if not each.blocks for text in each.sentences),
    )
