"""All that the doctor looks at, in one list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemark.diagnosis import deliveries, machine, schedulers, stores
from tidemark.diagnosis.findings import Finding
from tidemark.sources.files import find_source


def examined(only: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield every finding: of the machine, the lake, the sources and Airflow. No Spark starts, and nothing is made.

    Args:
        only: names of the sources to look at; none means all.

    Raises:
        UnknownNameError: there is no such source.
        InvalidSourceError: there is no such source, and some files have problems.
    """
    wanted = [find_source(name) for name in only]
    yield from machine.examined()
    sources, found = (wanted, []) if wanted else deliveries.known()
    yield from stores.examined([source.source for source in sources])
    yield from found
    yield from deliveries.examined(sources)
    yield from schedulers.examined()
