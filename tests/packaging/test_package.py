"""The package: what pip installs, what `import tidemark` costs, and the Python API."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tidemark
from tidemark import jars
from tidemark.errors import ConfigurationError, UnknownNameError

ROOT = Path(__file__).parents[2]

DUMPS = [ROOT / "examples" / "erp" / "dumps" / day for day in ("2026-01-01/a.jsonl", "2026-01-02/b.jsonl")]


def pinned() -> dict[str, str]:
    """Return the pins of the two requirement files by name."""
    lines = [line for name in ("", "-dev") for line in (ROOT / f"requirements{name}.txt").read_text().splitlines()]
    pins = (re.match(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)", line) for line in lines)
    return {pin[1].lower(): pin[2] for pin in pins if pin}


def imported(module: Path) -> set[str]:
    """Return the top names of what a module imports, also within its functions."""
    nodes = list(ast.walk(ast.parse(module.read_text("utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}


def installed_with(dependencies: Iterable[str]) -> set[str]:
    """Return the names of dependencies, and of all that they require, by the extras that are named."""
    names, left = set(), list(map(Requirement, dependencies))
    while left:
        wanted = left.pop()
        if (name := canonicalize_name(wanted.name)) not in names:
            names.add(name)
            own = map(Requirement, requires(name) or [])
            extras = wanted.extras or {""}
            left += [each for each in own if not each.marker or any(each.marker.evaluate({"extra": e}) for e in extras)]
    return names


def project() -> dict[str, Any]:
    """Return the metadata that pyproject.toml declares."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"])


def test_ranges_hold_what_is_pinned() -> None:
    """`pip install` may take what every test runs on; each pin stands in one list, and each range has a pin."""
    pins, declared = pinned(), project()
    extras = declared["optional-dependencies"]
    ranges = [
        Requirement(text)
        for text in [
            *declared["dependencies"],
            *(each for name in ("airflow", "lineage", "dev") for each in extras[name]),
        ]
    ]
    assert sorted(each.name for each in ranges) == sorted(pins)
    for each in ranges:
        assert each.specifier.contains(pins[each.name]), (str(each), pins[each.name])


def test_classifiers_name_the_python_that_is_required() -> None:
    """No version of Python is promised that the package refuses, nor one that no test runs on."""
    declared = project()
    versions = [name for name in declared["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert versions == [f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)]
    assert declared["requires-python"] == ">=3.11,<3.14"


def test_release_notes_are_the_section_of_the_changelog() -> None:
    """Without its heading and without its neighbours; a version that is not there ends with an error that says so."""
    script = [sys.executable, str(ROOT / ".ci" / "release_notes.py")]
    done = subprocess.run([*script, "Unreleased"], capture_output=True, text=True, check=True)
    assert "### Added" in done.stdout
    assert not re.search(r"(?m)^## ", done.stdout)
    missing = subprocess.run([*script, "v99.0.0"], capture_output=True, text=True, check=False)
    assert missing.returncode == 1
    assert "no section [99.0.0]" in missing.stderr
    notes = runpy.run_path(str(ROOT / ".ci" / "release_notes.py"))["notes"]
    text = "# C\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-01\n\n- two\n\n## [0.1.0] - 2026-01-01\n\n- one\n"
    assert (notes("0.2.0", text), notes("0.1.0", text)) == ("- two\n", "- one\n")


def test_workflows_call_what_is_there() -> None:
    """Actions are pinned by a commit, as a tag may be moved; programs and targets of make that they run exist."""
    targets = set(re.findall(r"(?m)^(\w+):", (ROOT / "Makefile").read_text("utf-8")))
    commands = []
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(file.read_text("utf-8"))["jobs"].values():
            for step in job["steps"]:
                assert re.fullmatch(
                    r"(actions|pypa)/[\w-]+@[0-9a-f]{40}", step.get("uses", "actions/none@" + "0" * 40)
                ), step
                commands += [step["run"]] if "run" in step else []
    assert {".ci/run", "make pythons OTHER=python${{ matrix.python }}"} <= set(commands)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for command in commands:
        program, argument, *_ = [*command.split(), ""]
        assert program != "make" or argument in targets, command
        assert program != "python" or (ROOT / argument).exists(), command


def test_import_is_quick() -> None:
    """`import tidemark` imports no library, and the names of the API are there."""
    program = "import sys, tidemark; print(dir(tidemark)); print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, modules = done.stdout.splitlines()
    assert {"'run'", "'decode'", "'Source'", "'__version__'"} <= set(names.strip("[]").split(", "))
    assert not {"pydantic", "pyspark", "pyiceberg", "pyarrow", "msgspec", "typer"} & set(modules.split())
    assert (tidemark.PACKAGE / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'decod'"):
        _ = tidemark.decod  # type: ignore[attr-defined]


def test_decode_yields_what_the_command_prints() -> None:
    """Events in order, with exact values as text, and a broken message with its reason."""
    events = list(tidemark.decode("canal_json", *DUMPS))
    assert len(events) == 20
    assert [event["operation"] for event in events[:3]] == ["INSERT"] * 3
    assert events[3]["after"]["total"] == "19.90"
    assert [event["quarantined"]["reason"] for event in events if "quarantined" in event] == ["malformed"]
    with pytest.raises(UnknownNameError, match="canal_json"):
        next(tidemark.decode("canl_json", DUMPS[0]))
    with pytest.raises(ConfigurationError, match="row_image"):
        next(tidemark.decode("canal_json", DUMPS[0], options={"row_imag": "full"}))


def test_run_refuses_what_it_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it writes anything."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    file = ROOT / "examples" / "erp" / "erp.yaml"
    with pytest.raises(ConfigurationError, match="before it starts"):
        tidemark.run(file, "2026-01-02", "2026-01-01")
    with pytest.raises(UnknownNameError):
        tidemark.run("nowhere")
    assert not (tmp_path / "home").exists()


def run(folder: Path, *command: str, **more: str) -> str:
    """Return what a command prints that knows nothing of this checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, env=environment | more, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


WORKING = [
    ("--help",),
    ("decode", "canal_json", *map(str, DUMPS)),
    ("identify", str(DUMPS[0])),
    ("validate", str(ROOT / "examples" / "erp" / "erp.yaml")),
    ("init", "erp", "--format", "canal_json", str(DUMPS[0])),
]
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from tidemark.cli import main

for words in json.loads(sys.argv[1]):
    printed, complaint = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = 0
    sys.argv = ["tidemark", *words]
    with redirect_stdout(printed), redirect_stderr(complaint):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    texts = {name: text.buffer.getvalue().decode() for name, text in (("printed", printed), ("complaint", complaint))}
    print(json.dumps({"status": status, **texts}))
"""
"""Commands in one process: the imports of each take a second."""
UV = str(Path(sys.executable).with_name("uv"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run(folder, UV, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


def test_fetching_jars_is_one_line_and_what_spark_says_is_told_if_it_fails(tmp_path: Path) -> None:
    """Spark's resolver writes a hundred lines, with warnings about hosts that nobody needs."""
    call = [sys.executable, "-m", "tidemark.jars"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout == f"10 pinned jars are in {jars.folder()}\n"
    assert len(done.stderr.splitlines()) == 1
    without_java = {**os.environ, "TIDEMARK_JARS": str(tmp_path / "jars"), "PATH": str(tmp_path)}
    without_java.pop("JAVA_HOME", None)
    failed = subprocess.run(call, capture_output=True, text=True, check=False, env=without_java)
    assert failed.returncode == ConfigurationError.exit_status
    assert "needs Java 17 and a way to Maven Central" in failed.stderr
    assert "JAVA_GATEWAY_EXITED" in failed.stderr
    assert list((tmp_path / "jars").iterdir()) == []


def test_what_is_imported_is_declared() -> None:
    """Each library that a module imports is a dependency or comes with one; those for Airflow are in extras."""
    declared = project()
    plain = installed_with(declared["dependencies"])
    extras = declared["optional-dependencies"]
    extra = installed_with([*extras["airflow"], *extras["lineage"]])
    known = packages_distributions()
    found: dict[str, set[str]] = {}
    for module in tidemark.PACKAGE.rglob("*.py"):
        for name in imported(module):
            if name not in sys.stdlib_module_names | {"tidemark"}:
                found.setdefault(name, set()).add(module.relative_to(tidemark.PACKAGE).parts[0])
    assert {"pydantic", "pyspark", "airflow"} <= found.keys()
    for name, packages in found.items():
        distributions = set(map(canonicalize_name, known[name]))
        allowed = plain | extra if packages <= {"orchestration", "services"} else plain
        assert distributions & allowed, (name, distributions, packages)


def test_wheel_works(wheel: Path, tmp_path: Path) -> None:
    """It holds all that commands need: help, decode, identify, validate. The tests bring its dependencies."""
    site = tmp_path / "site"
    run(tmp_path, UV, "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    where = run(tmp_path, sys.executable, "-c", "import tidemark; print(tidemark.__file__)", PYTHONPATH=str(site))
    assert Path(where.strip()).is_relative_to(site)
    outside = {"PYTHONPATH": str(site), "TIDEMARK_HOME": str(tmp_path / "home")}
    refused = [("demo", "dags"), ("airflow", "dags")]  # at once, and not after a start of Spark
    done = run(tmp_path, sys.executable, "-c", COMMANDS, json.dumps([*WORKING, *refused]), **outside)
    answers = [json.loads(line) for line in done.splitlines()]
    assert [answer["status"] for answer in answers] == [0] * len(WORKING) + [2] * len(refused), answers
    _are_right(tmp_path, [answer["printed"] for answer in answers[: len(WORKING)]])
    for answer in answers[len(WORKING) :]:
        assert "need a checkout of the repository" in answer["complaint"]
    assert not (tmp_path / "home").exists()


@pytest.mark.prove
@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """With its own dependencies, held to the repository's pins; without Airflow."""
    locked = re.findall(r"^([A-Za-z0-9_.-]+==[^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    (tmp_path / "constraints.txt").write_text("\n".join(locked))
    run(tmp_path, UV, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    constraints = ("--constraints", str(tmp_path / "constraints.txt"))
    run(tmp_path, UV, "pip", "install", "--quiet", "--python", python, *constraints, str(wheel))
    program = str(tmp_path / "venv" / "bin" / "tidemark")
    _are_right(tmp_path, [run(tmp_path, program, *words) for words in WORKING])
    assert "apache-airflow" not in run(tmp_path, UV, "pip", "list", "--python", python)


def _are_right(folder: Path, printed: Sequence[str]) -> None:
    """Help, decode, identify, validate and init, in a folder of their own."""
    shown, decoded, identified, valid, _ = printed
    assert "decode" in shown
    assert len(decoded.splitlines()) == 20
    assert "canal_json" in identified
    assert "1 source file is valid" in valid
    assert (folder / "sources" / "erp.yaml").exists()
