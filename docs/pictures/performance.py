"""Draws the plot of docs/performance.md from the table there: ``python docs/pictures/performance.py``."""

from __future__ import annotations

from pathlib import Path

import pygal
from pygal.style import Style

FOLDER = Path(__file__).parent

PAGE = FOLDER.parent / "performance.md"

TABLE = "| system | CPU s | wall s |"

STYLE = Style(
    background="#ffffff",
    plot_background="#ffffff",
    colors=("#0f766e", "#f59e0b"),
    opacity=1,
    font_family="sans-serif",
    label_font_size=15,
    legend_font_size=15,
    value_font_size=14,
    value_colors=("#ffffff", "#111827"),
    major_label_font_size=15,
)


def figures(page: str) -> dict[str, tuple[float, float]]:
    """Return CPU and wall seconds by system, from the table of a page."""
    lines = page[page.index(TABLE) :].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    return {name: (float(cpu), float(wall)) for name, cpu, wall in cells}


def drawn(found: dict[str, tuple[float, float]]) -> bytes:
    """Return the plot as SVG, without a script."""
    chart = pygal.HorizontalBar(
        style=STYLE, js=(), width=900, height=420, print_values=True, legend_at_bottom=True, no_prefix=True,
        pretty_print=True, show_y_guides=True, margin=10, disable_xml_declaration=True,
    )  # fmt: skip
    chart.x_labels = list(reversed(found))
    for place, name in ((0, "CPU seconds"), (1, "wall seconds")):
        chart.add(name, [found[system][place] for system in reversed(found)])
    svg: bytes = chart.render()
    return svg if isinstance(svg, bytes) else svg.encode()


if __name__ == "__main__":
    (FOLDER / "performance.svg").write_bytes(drawn(figures(PAGE.read_text(encoding="utf-8"))))
