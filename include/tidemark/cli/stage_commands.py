"""The commands that run stages: the five, and the work beside the flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict, cast

import msgspec
import typer

from tidemark.cli.app import ALONE, DAILY, REPAIR, app
from tidemark.cli.printing import tell
from tidemark.cli.progress import under_way
from tidemark.cli.running import AsJson, End, SourceName, Start, print_report, run_stages, works
from tidemark.errors import ConfigurationError
from tidemark.sources.files import find_source
from tidemark.stages import REBUILD, REHEARSED, STAGES

Reprocess = Annotated[bool, typer.Option("--reprocess", help="Also decode again what landed in the interval before.")]

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --reprocess: show the rows that would differ, and change nothing.")
]


@app.command(rich_help_panel=DAILY)
@works
def run(
    source: SourceName,
    start: Start = None,
    end: End = None,
    *,
    reprocess: Reprocess = False,
    dry_run: DryRun = False,
) -> None:
    """Run all five stages for one interval (default: everything that has not landed), in one Spark session."""
    _derive(STAGES[:3] if dry_run else STAGES, source, start, end, reprocess=reprocess, dry_run=dry_run)


def _derive(
    stages: Sequence[str], source: str, start: str | None, end: str | None, *, reprocess: bool, dry_run: bool
) -> None:
    if dry_run and not reprocess:
        raise ConfigurationError("--dry-run shows what reprocessing would change: give --reprocess too")
    run_stages(stages, source, start, end, rehearsed=dry_run, arguments={"normalize": {"reprocess": reprocess}})


def _stage_command(stage: str, summary: str) -> None:
    """Add a command for a stage whose only arguments are a source and an interval."""

    def command(source: SourceName, start: Start = None, end: End = None) -> None:
        run_stages([stage], source, start, end)

    command.__doc__ = summary
    app.command(stage, rich_help_panel=ALONE)(works(command))


_stage_command("land", "Copy the messages of the interval's dump files into raw, verbatim.")


@app.command(rich_help_panel=ALONE)
@works
def normalize(
    source: SourceName,
    start: Start = None,
    end: End = None,
    *,
    reprocess: Reprocess = False,
    dry_run: DryRun = False,
) -> None:
    """Decode new messages of raw into the change log; put those that cannot be read into quarantine."""
    _derive(REHEARSED if dry_run else STAGES[1:2], source, start, end, reprocess=reprocess, dry_run=dry_run)


_stage_command("compact", "Fold new events of the change log into candidates of the tables.")
_stage_command("check", "Let Great Expectations judge the candidates.")


@app.command(rich_help_panel=ALONE)
@works
def publish(
    source: SourceName,
    start: Start = None,
    end: End = None,
    approve: Annotated[
        int | None,
        typer.Option(metavar="CUT", help="Number of a cut that awaits approval; `check` says why."),
    ] = None,
) -> None:
    """Publish the candidates that passed the checks: all tables of the source in one cut."""
    run_stages(["publish"], source, start, end, arguments={"publish": {"approve": approve}})


@app.command(rich_help_panel=REPAIR)
@works
def rebuild(
    source: SourceName,
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="Name as published (erp.orders) or at the source; default: all."),
    ] = None,
) -> None:
    """Build tables again from their whole change log, with keys and columns of the source file; check, publish."""
    run_stages(REBUILD, source, arguments={"rebuild": {"table": table}})


@app.command(rich_help_panel=DAILY)
@works
def maintain(
    source: SourceName,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="Only this table, as source.table.")] = None,
) -> None:
    """Rewrite small files, apply delete files, drop old tags, snapshots, orphan files and tombstones."""
    run_stages(["maintain"], source, arguments={"maintain": {"table": table}})


@app.command(rich_help_panel=REPAIR)
@works
def restore(source: SourceName, cut: Annotated[int, typer.Option(help="A published cut that is still kept.")]) -> None:
    """Move the published tables back to an earlier cut; the next run applies the later events again."""
    run_stages(["restore"], source, arguments={"restore": {"cut": cut}})


class QualityAnswer(TypedDict):
    """A published table, judged again."""

    source: str
    table: str
    cut: int
    """Number of the cut that was judged."""
    rows: int
    """Its rows in that cut."""
    checks: int
    """How many checks were made, the built-in ones among them."""
    failed: int
    """Blocking checks that failed."""
    warned: int
    """Checks that failed and only warn."""


@app.command(rich_help_panel=DAILY)
@works
def quality(
    source: SourceName,
    cut: Annotated[int | None, typer.Option(help="A published cut that is still kept; default: the newest.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check a published cut again, by the checks of today; change nothing of the cut."""
    from tidemark.lake.lake import Lake
    from tidemark.pipeline import run_stage
    from tidemark.report import site

    name = find_source(source).source
    Lake.existing()
    with under_way(f"{name} quality", quiet=as_json) as clock:
        report = run_stage("quality", find_source(source), None, None, cut=cut)
    if as_json:
        for table, counts in report.details.items():
            answer = cast("QualityAnswer", {"source": report.source, "table": table, **counts})
            typer.echo(msgspec.json.encode(answer).decode())
    else:
        print_report(report, took=clock.seconds)
        typer.echo(f"report: {site.index_page()}")
    for problem in report.problems:
        tell(problem)
    if report.has_problems:
        raise typer.Exit(1)
