"""Pages from views: Jinja templates that escape every name, under a policy that lets a page load nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup

from tidemark.ledger.states import TableState, VerdictWord
from tidemark.report import words
from tidemark.text import harmless

_GLYPHS: Final[Mapping[str, str]] = {
    VerdictWord.PASSED: "✓",
    VerdictWord.APPROVED: "✓",
    VerdictWord.WARNED: "!",
    VerdictWord.FAILED: "✕",
    TableState.STOPPED: "✕",
    VerdictWord.HELD: "?",
}


def render(template: str, view: Mapping[str, Any]) -> str:
    """Return a page."""
    return _templates().get_template(template).render(view)


def digest(template: str, view: Mapping[str, Any]) -> str:
    """Return a digest of all that a page is made of: a page with the same digest need not be written again."""
    made = hashlib.sha256(_code().encode())
    made.update(template.encode() + msgspec.json.encode(view, order="deterministic", enc_hook=str))
    return made.hexdigest()[:24]


def compile_templates() -> None:
    """Compile all templates, for a process whose forks write pages: each would compile what it renders again."""
    templates = _templates()
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)


@cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("tidemark.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    style = _source(found, "style.css")
    sha = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    found.filters |= {"number": words.number, "time": words.time, "duration": words.duration}
    found.globals |= {
        "style": Markup(style),  # noqa: S704 - a file of this package
        "policy": f"default-src 'none'; style-src 'sha256-{sha}'; base-uri 'none'; form-action 'none'",
        "glyph": _Glyphs(_GLYPHS),
    }
    return found


class _Glyphs(dict[str, str]):
    """Signs that go with the colours of words; a word without a sign has none."""

    def __missing__(self, key: str) -> str:
        return ""


def _plain(value: object) -> object:
    """Return what a template prints: characters that steer the direction of text are escapes, as on a terminal."""
    return harmless(value) if type(value) is str else value


def _source(templates: jinja2.Environment, name: str) -> str:
    loader = templates.loader
    return loader.get_source(templates, name)[0] if loader else ""


@cache
def _code() -> str:
    """Return a digest of the templates and of what draws, so that a new version writes its pages again."""
    templates = _templates()
    texts = [_source(templates, name) for name in sorted(templates.list_templates())]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
