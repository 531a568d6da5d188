"""The command line, and the entry point of the jobs that spark-submit runs.

Results go to standard output, progress and logs to standard error. Exit status: 0 done; 1 data held back; 2 usage or
configuration; 3 the store or the engine failed, safe to run again.
"""

from __future__ import annotations

import csv
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec

import msgspec
import structlog
import typer

from tidemark.errors import ConfigurationError, RetriableLakeError, TidemarkError, first_line
from tidemark.printing import print_status, print_table, tell
from tidemark.sources import find_source, load_sources, validate
from tidemark.stages import REBUILD, REHEARSED, RETRY, STAGES, StageReport
from tidemark.terminal import harmless

app = typer.Typer(
    name="tidemark",
    help="Turn change-data-capture dumps into checked Apache Iceberg tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
quarantine_app = typer.Typer(help="Messages that could not be read.", no_args_is_help=True)
app.add_typer(quarantine_app, name="quarantine")

P = ParamSpec("P")

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of a source (a file in include/sources).")]
Start = Annotated[str | None, typer.Option(help="Start of the interval, ISO 8601, UTC unless it has an offset.")]
End = Annotated[str | None, typer.Option(help="End of the interval, not in it.")]
Reprocess = Annotated[
    bool, typer.Option("--reprocess", help="Also derive the events again of what landed in the interval before.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --reprocess: show the rows that would differ, and change nothing.")
]
Reason = Annotated[str | None, typer.Option(help="Only this reason.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


class Layout(StrEnum):
    """How ``tidemark sql`` prints."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@app.callback()
def setup(*, verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False) -> None:
    """Turn change-data-capture dumps into checked Apache Iceberg tables."""
    configure_logging(verbose=verbose)


def configure_logging(*, verbose: bool = False) -> None:
    """Log one event a line, key=value, to standard error; libraries speak up only when something is wrong."""
    warnings.filterwarnings("ignore", module=r"(pyspark|pyiceberg|great_expectations|sqlalchemy|py4j)\b.*")
    level = logging.DEBUG if verbose or os.environ.get("TIDEMARK_LOG") == "debug" else logging.INFO
    structlog.configure(
        processors=[
            _as_harmless,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up at each line: standard error may have been replaced since.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _as_harmless(_logger: object, _method: str, told: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Log values of messages, as names of tables, without what would steer a terminal."""
    return {name: harmless(value) if isinstance(value, str) else value for name, value in told.items()}


def _exits(command: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into exit statuses; one that nobody thought of must not end as data that is held back."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except TidemarkError as error:
            tell(f"{type(error).__name__}: {error}")
            raise typer.Exit(error.exit_status) from error
        except BrokenPipeError:  # the reader has seen enough (| head); Python would complain again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            from tidemark.pipeline import STORE_ERRORS

            if isinstance(error, STORE_ERRORS):
                tell(f"RetriableLakeError: the store or the engine failed: {first_line(error)}")
            else:
                traceback.print_exception(error)
            raise typer.Exit(RetriableLakeError.exit_status) from error

    return run


def moment(text: str | None) -> datetime | None:
    """Read a bound of an interval.

    Raises:
        ConfigurationError: it is no ISO 8601 time.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"{text!r} is no time: write 2026-01-31 or 2026-01-31T06:00:00Z") from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _run(
    stages: Sequence[str],
    name: str,
    start: str | None = None,
    end: str | None = None,
    *,
    rehearsed: bool = False,
    arguments: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> None:
    """Run stages; ``arguments`` are the stages' own, ``rehearsed`` shows what reprocessing would change."""
    from tidemark import locks
    from tidemark.pipeline import rehearse, run_stage

    bounds = moment(start), moment(end)
    if bounds[0] and bounds[1] and bounds[0] >= bounds[1]:
        raise ConfigurationError(f"the interval ends ({end}) before it starts ({start})")
    source = find_source(name)
    if rehearsed:
        for report in rehearse(stages, source, *bounds):
            _print_report(report)
            for problem in report.problems:
                tell(f"would be held back: {problem}")
        return
    problems: dict[str, None] = {}
    with locks.hold(source.source):
        for stage in stages:
            report = run_stage(stage, source, *bounds, **arguments.get(stage, {}))
            _print_report(report)
            problems.update(dict.fromkeys(report.problems))
            if report.held and stage == "check":
                break  # publish would only refuse
    for problem in problems:
        tell(f"held back: {problem}")
    if problems:
        raise typer.Exit(1)


def _print_report(report: StageReport) -> None:
    words = " ".join(f"{name}={value}" for name, value in report.summary.items())
    typer.echo(f"{report.source} {report.stage}: {words}")
    for table, counts in report.details.items():
        typer.echo(f"  {harmless(table)}: " + " ".join(f"{name}={value}" for name, value in counts.items()))


@app.command()
@_exits
def run(
    source: SourceName,
    start: Start = None,
    end: End = None,
    *,
    reprocess: Reprocess = False,
    dry_run: DryRun = False,
) -> None:
    """Run all five stages for one interval (without bounds: all that has not landed), in one Spark session."""
    _derive(STAGES[:3] if dry_run else STAGES, source, start, end, reprocess=reprocess, dry_run=dry_run)


def _derive(
    stages: Sequence[str], source: str, start: str | None, end: str | None, *, reprocess: bool, dry_run: bool
) -> None:
    if dry_run and not reprocess:
        raise ConfigurationError("--dry-run shows what reprocessing would change: give --reprocess too")
    _run(stages, source, start, end, rehearsed=dry_run, arguments={"normalize": {"reprocess": reprocess}})


@app.command()
@_exits
def normalize(
    source: SourceName,
    start: Start = None,
    end: End = None,
    *,
    reprocess: Reprocess = False,
    dry_run: DryRun = False,
) -> None:
    """Decode what is new in raw into the change log; set aside what cannot be read."""
    _derive(REHEARSED if dry_run else STAGES[1:2], source, start, end, reprocess=reprocess, dry_run=dry_run)


@app.command()
@_exits
def rebuild(
    source: SourceName,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="As published (erp.orders) or at the source; all without.")
    ] = None,
) -> None:
    """Build tables again from their whole change log, with key and columns of the source file; check; publish."""
    _run(REBUILD, source, arguments={"rebuild": {"table": table}})


def _stage_command(stage: str, summary: str) -> None:
    def command(source: SourceName, start: Start = None, end: End = None) -> None:
        _run([stage], source, start, end)

    command.__doc__ = summary
    app.command(stage)(_exits(command))


_stage_command("land", "Take dump files of the interval into raw, verbatim.")
_stage_command("compact", "Fold what is new in the change log into candidates of the tables.")
_stage_command("check", "Let Great Expectations judge the candidates.")


@app.command()
@_exits
def publish(
    source: SourceName,
    start: Start = None,
    end: End = None,
    approve: Annotated[
        int | None, typer.Option(metavar="CUT", help="Number of a cut that is held for its many deletes.")
    ] = None,
) -> None:
    """Publish the candidates that passed: all tables of the source in one cut."""
    _run(["publish"], source, start, end, arguments={"publish": {"approve": approve}})


@app.command()
@_exits
def maintain(
    source: SourceName,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Only this table, as source.table.")] = None,
) -> None:
    """Rewrite small files, fold deletes, drop old tags, snapshots, orphan files and tombstones."""
    _run(["maintain"], source, arguments={"maintain": {"table": table}})


@app.command()
@_exits
def restore(source: SourceName, cut: Annotated[int, typer.Option(help="A published cut that is still kept.")]) -> None:
    """Put the published tables back to an earlier cut; the next run folds the events after it again."""
    _run(["restore"], source, arguments={"restore": {"cut": cut}})


@app.command()
@_exits
def quality(
    source: SourceName,
    cut: Annotated[int | None, typer.Option(help="A published cut that is still kept; the newest without.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Judge a published cut again, and show how the tables did from cut to cut; changes nothing."""
    from tidemark import trend
    from tidemark.lake import Lake, home
    from tidemark.pipeline import run_stage

    name = find_source(source).source
    report = run_stage("quality", find_source(source), None, None, cut=cut)
    entries = trend.trend_of(Lake.open(), name, home())
    page = trend.write_page(entries, name, home())
    if as_json:
        for entry in entries:
            typer.echo(msgspec.json.encode(entry).decode())
    else:
        _print_report(report)
        print_table([list(trend.COLUMNS), *([_plain(entry[column]) for column in trend.COLUMNS] for entry in entries)])
        typer.echo(f"page: {page}")
    for problem in report.problems:
        tell(problem)
    if report.held:
        raise typer.Exit(1)


def _plain(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str("" if value is None else value)


_LOOK_NEXT = """
Look next:
  Data Docs     {docs}
  a table       {program} sql "SELECT * FROM shop_canal.customers LIMIT 5"
  its events    {program} sql "SELECT operation, after.name FROM shop_canal.customers__changes LIMIT 5"
  set aside     {program} quarantine show shop_canal
  run it again  TIDEMARK_LANDING={landing} {program} run shop_canal    (lands nothing, changes nothing)"""


@app.command()
@_exits
def demo(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="[SOURCE...]", help="Bundled sources; one of each format without.")
    ] = None,
) -> None:
    """Run bundled sources over four days of dumps through Airflow, and compare what they publish."""
    from tidemark.demo.runner import DEFAULT
    from tidemark.demo.runner import run as run_demo
    from tidemark.lake import home

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    outcome = run_demo(sources or DEFAULT)
    print_status(outcome.statuses)
    for table in outcome.differences:
        tell(f"{table} is not what the history ends with")
    if outcome.differences:
        raise typer.Exit(1)
    docs = home() / "quality" / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    typer.echo(
        f"\n{len(outcome.statuses)} sources told one history and published the same tables ({outcome.seconds:.0f} s)."
    )
    typer.echo(_LOOK_NEXT.format(docs=docs, program=sys.argv[0], landing=home() / "demo" / "landing"))


@app.command()
@_exits
def status(
    source: Annotated[str | None, typer.Argument(metavar="[SOURCE]", help="Name of a source; all without.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show cut, rows, lag, held, quarantined and last verdict of each table."""
    from tidemark.lake import Lake
    from tidemark.status import status_of

    lake = Lake.open()
    names = [find_source(source).source] if source else [found.source for found in load_sources()]
    found = [status_of(lake, name) for name in names]
    if as_json:
        for entry in found:
            typer.echo(msgspec.json.encode(entry).decode())
    else:
        print_status(found)


@app.command()
@_exits
def sql(
    statement: Annotated[str, typer.Argument(metavar="SELECT", help="A query; tables are named source.table.")],
    layout: Annotated[Layout, typer.Option("--format", help="How to print the rows.")] = Layout.TABLE,
) -> None:
    """Query the published tables, and source.table__changes: every event of a table."""
    from tidemark import query
    from tidemark.lake import Lake

    answer = query.query(Lake.open(), statement)
    if layout is Layout.JSON:
        sys.stdout.buffer.writelines(query.as_json_lines(answer))
    elif layout is Layout.CSV:
        csv.writer(sys.stdout).writerows(query.as_text_rows(answer))
    else:
        print_table(list(query.as_text_rows(answer)))


@app.command()
@_exits
def explain(
    table: Annotated[str, typer.Argument(metavar="SOURCE.TABLE", help="A published table.")],
    key: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE...", help="The row's key; bytes as Base64.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show the life of one row: each event that set its cells, and those that lost, with the reason."""
    from tidemark.explain import explain as explain_row
    from tidemark.lake import Lake
    from tidemark.life_output import as_json_lines, as_text

    life = explain_row(Lake.open(), table, key)
    if not life.chapters:
        tell(f"No event of {table} has {' '.join(key)}")
    elif as_json:
        sys.stdout.buffer.writelines(as_json_lines(life))
    else:
        typer.echo("\n".join(as_text(life)))


@app.command()
@_exits
def decode(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help="Name of a format, as canal_json.")],
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Dump files, in order.")],
    option: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the format.")] = None,
) -> None:
    """Print the canonical events of dump files as JSON lines, in the order of the dump, without Spark."""
    from tidemark.decode import decode_files

    sys.stdout.buffer.writelines(decode_files(format_name, files, _options(option or [])))


def _options(given: Iterable[str]) -> dict[str, object]:
    pairs = [option.partition("=") for option in given]
    wrong = [name for name, equals, _ in pairs if not equals]
    if wrong:
        raise ConfigurationError(f"--option {wrong[0]}: write --option KEY=VALUE")
    return {name: value for name, _, value in pairs}


@app.command()
@_exits
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new source.")],
    format_name: Annotated[str, typer.Option("--format", metavar="FORMAT", help="Name of a format, as canal_json.")],
    samples: Annotated[
        list[str] | None, typer.Argument(metavar="[SAMPLE...]", help="Dump files to learn from.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the format.")] = None,
) -> None:
    """Write a commented source file, its tables, keys and types as a sample dump tells them."""
    from tidemark.source_draft import write_draft

    path, remarks = write_draft(name, format_name, samples or [], _options(option or []))
    for remark in remarks:
        tell(remark)
    typer.echo(path)


@app.command("validate")
@_exits
def validate_files(
    paths: Annotated[list[Path] | None, typer.Argument(help="Source files or folders; all sources without.")] = None,
) -> None:
    """Check source files: every error with file, line and a suggestion."""
    problems = validate(paths or [])
    for problem in problems:
        tell(str(problem))
    if problems:
        raise typer.Exit(2)
    typer.echo(f"{len(paths) if paths else len(load_sources())} source files are valid")


@quarantine_app.command("list")
@_exits
def quarantine_list(source: SourceName, reason: Reason = None, *, as_json: AsJson = False) -> None:
    """List the messages that were set aside: where they stood, and why."""
    _quarantined(source, reason, as_json=as_json, with_bytes=False)


@quarantine_app.command("show")
@_exits
def quarantine_show(source: SourceName, reason: Reason = None, *, as_json: AsJson = False) -> None:
    """Show the messages that were set aside, with their bytes."""
    _quarantined(source, reason, as_json=as_json, with_bytes=True)


@quarantine_app.command("retry")
@_exits
def quarantine_retry(source: SourceName, reason: Reason = None) -> None:
    """Try quarantined messages again, after a fix; what can be read now is compacted, checked and published."""
    _run(RETRY, source, arguments={"retry": {"reason": reason}})


def _quarantined(name: str, reason: str | None, *, as_json: bool, with_bytes: bool) -> None:
    from tidemark import query
    from tidemark.lake import Lake
    from tidemark.row_filters import equals

    table = Lake.open().find(("quarantine", find_source(name).source))
    if table is None:
        return
    columns = ["reason", "detail", "object", "file", "place", *(["key", "value"] if with_bytes else [])]
    scan = table.scan(row_filter=equals("reason", reason), selected_fields=tuple(columns)) if reason else None
    rows = (
        (scan or table.scan(selected_fields=tuple(columns)))
        .to_arrow()
        .sort_by([("file", "ascending"), ("place", "ascending")])
    )
    if as_json:
        sys.stdout.buffer.writelines(query.as_json_lines(rows))
    else:
        print_table(list(query.as_text_rows(rows)))


def job(stage: str) -> None:
    """Run one stage as a Spark job: ``SOURCE [--start T] [--end T]`` and the stage's own options.

    The process ends with the stage's exit status. Files that were refused and tables that were stopped do not end the
    run before the others are published: publish reports them and fails then.
    """
    configure_logging()

    def command(
        source: SourceName,
        start: Start = None,
        end: End = None,
        table: Annotated[str | None, typer.Option(help="Only this table.")] = None,
        reason: Annotated[str | None, typer.Option(help="Only messages set aside for this reason.")] = None,
        cut: Annotated[int | None, typer.Option(help="This cut.")] = None,
        approve: Annotated[int | None, typer.Option(help="Publish this cut, held for its many deletes.")] = None,
        *,
        reprocess: Annotated[bool | None, typer.Option("--reprocess", help="Decode again what was decoded.")] = None,
        dry_run: Annotated[bool | None, typer.Option("--dry-run", help="Tell what reprocessing would change.")] = None,
    ) -> None:
        from tidemark.pipeline import HOLDING, run_task

        options: dict[str, Any] = {
            "table": table,
            "reason": reason,
            "cut": cut,
            "approve": approve,
            "reprocess": reprocess,
            "dry_run": dry_run,
        }
        report = run_task(stage, find_source(source), moment(start), moment(end), **options)
        _print_report(report)
        for problem in report.problems:
            tell(f"held back: {problem}")
        if report.held and stage in HOLDING:
            raise typer.Exit(1)

    typer.run(_exits(command))


def main() -> None:
    """Entry point of ``tidemark``."""
    app()
