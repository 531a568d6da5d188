"""Compares what Tidemark publishes with the rows of real databases, captured by real tools.

    make lab, or: .venv/bin/python lab/run.py [--round NAME] [--setting NAME] [--delivery NAME] [--keep FOLDER]

See ``docs/lab.md`` for what is compared and what was found.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from capturing import Captured, capture
from deliveries import DELIVERIES
from matrix import ROUNDS, Round
from overview import found
from producers import Setting
from publishing import Combination, Outcome, Published, prepare, publish
from recording import record
from shares import share
from source_files import of_file

from tidemark.errors import TidemarkError


class Lab:
    """One call: rounds are captured one after another, while others of them are published in processes beside it."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        """Start nothing yet."""
        self._arguments = arguments
        self._folder = folder
        self._outcomes: list[Outcome] = []
        self._done = found(line for name in arguments.done or () for line in name.read_text("utf-8").splitlines())

    def run(self) -> bool:
        """Do all that the arguments ask for, and print it; whether something is wrong."""
        spawning = multiprocessing.get_context("spawn")  # each process has a Spark of its own
        with ProcessPoolExecutor(self._arguments.jobs, spawning, prepare, (self._folder,)) as pool:
            try:
                for round_ in ROUNDS:
                    if not self._arguments.round or round_.name in self._arguments.round:
                        for each in self._combinations(round_):
                            pool.submit(publish, each).add_done_callback(functools.partial(self._print, each))
                pool.shutdown()
            finally:
                pool.shutdown(cancel_futures=True)
        return any(each.is_wrong for each in self._outcomes)

    def _combinations(self, each: Round) -> Iterator[Combination]:
        """Capture a round, unless an earlier call did; what of it is to be published."""
        arguments = self._arguments
        settings = [one for one in each.connectors if not arguments.setting or one.name in arguments.setting]
        kept = Path(arguments.captured or self._folder) / each.name / "captured"
        if settings and not arguments.captured and not self._captures(each, settings, kept):
            return
        for setting in settings:
            captured = Captured.read(kept, [setting])
            if arguments.record:
                folder, source = Path(arguments.record), of_file(each, setting)
                record(folder, source, captured.records[setting.name], captured.truths)
            elif not arguments.capture:
                yield from self._deliveries(each, setting, list(captured.truths), kept)

    def _captures(self, each: Round, settings: Sequence[Setting], kept: Path) -> bool:
        """Capture a round; false if that fails, which is reported, and other rounds go on."""
        try:
            capture(each, settings, self._folder / each.name).write(kept)
        except TidemarkError as error:
            self._tell([Outcome(each.name, "-", "-", "-", f"not captured: {error}")])
            return False
        return True

    def _deliveries(self, each: Round, setting: Setting, tables: Sequence[str], kept: Path) -> Iterator[Combination]:
        arguments = self._arguments
        for number, name in enumerate(DELIVERIES):
            is_wanted = not arguments.delivery or name in arguments.delivery
            if is_wanted and (each.name, setting.name, name) not in self._done:
                wanted = arguments.table or share(each, setting, number, arguments.parts, tables)
                yield Combination(
                    each.name, setting.name, name, wanted, kept, arguments.seed, arguments.before_images,
                    is_kept=bool(arguments.keep),
                )  # fmt: skip

    def _print(self, each: Combination, done: Future[Published]) -> None:
        """Print what came of a combination, unless it was not to be published any more."""
        if done.cancelled():
            return
        if error := done.exception():
            tables = ", ".join(each.tables)
            self._tell([Outcome(each.round, each.setting, each.delivery, tables, f"stopped: {error!r}")])
            return
        outcomes, seconds = done.result()
        self._tell(outcomes)
        sys.stderr.write(f"{each.round} {each.setting} {each.delivery}: {seconds:.0f} s\n")

    def _tell(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes += outcomes
        sys.stdout.write("".join(each.lines() for each in outcomes))
        sys.stdout.flush()


def main() -> int:
    """Run the rounds that the arguments ask for; 0 if every table is equal, or differs for a reason that is known."""
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="tidemark-lab-", dir=arguments.keep))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    try:
        return int(Lab(arguments, folder).run())
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round", action="append", choices=[each.name for each in ROUNDS])
    parser.add_argument("--setting", action="append")
    parser.add_argument("--delivery", action="append", choices=DELIVERIES)
    parser.add_argument("--table", action="append", help="publish this table alone, or these, in each delivery")
    parser.add_argument(
        "--parts",
        type=int,
        default=len(DELIVERIES),
        help="into how many parts the tables are dealt, of which each delivery of a setting publishes one",
    )
    parser.add_argument("--every-table", dest="parts", action="store_const", const=1, help="the same as --parts 1")
    parser.add_argument(
        "--done", action="append", type=Path, help="what an earlier call printed: leave out what it published"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes that publish, each with up to 2 GiB of memory")
    parser.add_argument("--record", help="a folder: write a few tables of one round and setting there, publish nothing")
    parser.add_argument("--keep", help="a folder in which everything stays, to be looked at")
    parser.add_argument("--capture", action="store_true", help="publish nothing; with --keep, to be published later")
    parser.add_argument("--captured", help="a folder that an earlier call kept: publish what it captured")
    parser.add_argument("--seed", type=int, default=29, help="where streams are cut and how they are mixed")
    parser.add_argument(
        "--before-images",
        choices=["warn", "off"],
        default="warn",
        help="what each source file says of them",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
