"""The quality of a source's tables from cut to cut, read from the ledger and from the stored results of checks.

Needs neither Spark nor Great Expectations.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow

Entry = dict[str, Any]

CUTS = 30
"""How many of the newest cuts are shown."""

COLUMNS = ("cut", "table", "state", "rows", "events", "quarantined", "quarantined_share", "verdict", "failed")

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Quality of {{ source }}</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
  table { border-collapse: collapse; width: 100% }
  th, td { border-bottom: 1px solid #ddd; padding: .3rem .6rem; text-align: left; vertical-align: top }
  td.number { text-align: right; font-variant-numeric: tabular-nums }
  .failed { background: #fdd } .warned { background: #ffd }
</style>
<h1>Quality of {{ source }}</h1>
<p>The newest {{ cuts }} cuts, and what was found when each was last judged. <a href="{{ docs }}">Data Docs</a></p>
{% for table, rows in tables.items() %}
<h2>{{ table }}</h2>
<table>
<tr><th>cut<th>at (UTC)<th>rows<th>events<th>quarantined<th>verdict<th>failed checks</tr>
{% for row in rows %}
<tr class="{{ row.verdict or row.state }}">
<td>{{ row.cut }}<td>{{ row.at[:19] }}
<td class="number">{{ row.rows if row.rows is not none else "" }}<td class="number">{{ row.events }}
<td class="number">{{ row.quarantined }} ({{ "%.2f"|format(100 * row.quarantined_share) }} %)
<td>{{ row.verdict or row.state }}<td>{{ row.failed | join(", ") }}</tr>
{% endfor %}
</table>
{% endfor %}
</html>
"""


def trend_of(lake: Lake, source: str, home: Path) -> list[Entry]:
    """Return the tables of the newest cuts, the newest cut first, ready for JSON.

    Keys: ``source``, ``cut``, ``table`` (published name, or the source's name if it was never published), ``state`` (of
    the table: candidate, published, stopped), ``at`` (ISO 8601, UTC), ``rows``, ``events``, ``quarantined`` (events of
    the cut), ``quarantined_share`` (of the events; 0 to 1), ``verdict`` (before publishing: passed, warned, failed),
    ``failed`` (checks that failed when the cut was last judged).
    """
    ledger = Ledger(lake, source)
    rows = ledger.tables()
    newest = sorted({row.cut for row in rows}, reverse=True)[:CUTS]
    shown = [row for row in rows if row.cut in newest]
    failed = _failed_checks(home, source, {row.snapshot for row in shown if row.snapshot is not None})
    entries = [_entry(source, row, failed) for row in shown]
    return sorted(entries, key=lambda entry: (-entry["cut"], entry["table"]))


def _entry(source: str, row: TableRow, failed: Mapping[int, list[str]]) -> Entry:
    return {
        "source": source,
        "cut": row.cut,
        "table": row.target or row.object,
        "state": row.state,
        "at": row.written_at.isoformat() if row.written_at else "",
        "rows": None if row.state == cuts.STOPPED else row.rows_after,
        "events": row.events,
        "quarantined": row.quarantined,
        "quarantined_share": round(row.quarantined / row.events, 6) if row.events else 0.0,
        "verdict": row.verdict,
        "failed": failed.get(row.snapshot or 0, []),
    }


def _failed_checks(home: Path, source: str, snapshots: Container[int]) -> dict[int, list[str]]:
    """Return, for each snapshot, the checks that failed when it was last judged, as Great Expectations stored them."""
    stored = home / "quality" / "gx" / "uncommitted" / "validations"
    # .../<suite>/<run>/<time of the run>/<snapshot>.json: later times sort last
    files = sorted(stored.glob(f"**/{source}-cut-*/*/*.json"), key=lambda file: file.parent.name)
    newest = {int(file.stem): file for file in files if file.stem.isdecimal()}
    read = {number: json.loads(file.read_bytes()) for number, file in newest.items() if number in snapshots}
    results = {number: validation["results"] for number, validation in read.items()}
    return {number: [_name(each) for each in found if not each["success"]] for number, found in results.items()}


def _name(result: Mapping[str, Any]) -> str:
    config = result["expectation_config"]
    column = config["kwargs"].get("column")
    return f"{config['type']} ({column})" if column else str(config["type"])


def write_page(entries: Sequence[Entry], source: str, home: Path) -> Path:
    """Write the trend as a page beside the Data Docs, and return the page's path."""
    page = home / "quality" / "trend" / f"{source}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[Entry]] = {}
    for entry in entries:
        tables.setdefault(entry["table"], []).append(entry)
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_PAGE)
    docs = "../gx/uncommitted/data_docs/local_site/index.html"
    shown = dict(sorted(tables.items()))
    page.write_text(template.render(source=source, cuts=CUTS, docs=docs, tables=shown), encoding="utf-8")
    return page
