"""Compares what Tidemark publishes with the rows of real databases, captured by real tools.

    make lab, or: .venv/bin/python lab/run.py [--round NAME] [--setting NAME] [--delivery NAME] [--keep FOLDER]

See ``docs/lab.md`` for what is compared and what was found.
"""

from __future__ import annotations

import argparse
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


class Lab:
    """One call: rounds are captured one after another, while others of them are published in processes beside it."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        """Start nothing yet."""
        self._arguments = arguments
        self._folder = folder
        self._outcomes: list[Outcome] = []
        self._done = found(line for name in arguments.done or () for line in name.read_text("utf-8").splitlines())

    def run(self) -> bool:
        """Do all that is asked for, and print it; whether something is wrong."""
        begun: list[Future[Published]] = []
        spawning = multiprocessing.get_context("spawn")  # each process has a Spark of its own
        with ProcessPoolExecutor(self._arguments.jobs, spawning, prepare, (self._folder,)) as pool:
            try:
                for round_ in ROUNDS:
                    if not self._arguments.round or round_.name in self._arguments.round:
                        for each in self._combinations(round_):
                            begun.append(pool.submit(publish, each))
                            begun[-1].add_done_callback(self._print)
                for one in begun:
                    one.result()
            finally:
                pool.shutdown(cancel_futures=True)
        return any(each.is_wrong for each in self._outcomes)

    def _combinations(self, each: Round) -> Iterator[Combination]:
        """Capture a round, unless an earlier call did; what of it is to be published."""
        arguments = self._arguments
        settings = [one for one in each.connectors if not arguments.setting or one.name in arguments.setting]
        kept = Path(arguments.captured or self._folder) / each.name / "captured"
        if settings and not arguments.captured:
            capture(each, settings, self._folder / each.name).write(kept)
        for setting in settings:
            captured = Captured.read(kept, [setting])
            if arguments.record:
                folder, told = Path(arguments.record), of_file(each, setting)
                record(folder, told, captured.records[setting.name], captured.truths)
            elif not arguments.capture:
                yield from self._deliveries(each, setting, list(captured.truths), kept)

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

    def _print(self, done: Future[Published]) -> None:
        """Print what came of a combination, unless it was not to be published any more, or failed."""
        if done.cancelled() or done.exception():
            return
        outcomes, seconds = done.result()
        self._outcomes += outcomes
        for each in outcomes:
            sys.stdout.write(each.lines())
        sys.stdout.flush()
        sys.stderr.write(f"{outcomes[0].round} {outcomes[0].setting} {outcomes[0].delivery}: {seconds:.0f} s\n")


def main() -> int:
    """Run the rounds that are asked for; 0 if every table is equal, or differs for a reason that is known."""
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
