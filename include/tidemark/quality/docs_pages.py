"""How Great Expectations' pages are rendered: names as plain text, warnings as warnings, nothing of another host."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import CodeType
from typing import Any, Final

from great_expectations.render.components import RenderedDocumentContent
from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView
from jinja2 import BaseLoader, BytecodeCache, Environment, PackageLoader
from jinja2.bccache import Bucket

from tidemark.quality import page_assets


class _CompiledTemplates(BytecodeCache):
    """The compiled templates of this process.

    Great Expectations makes a view for each kind of page of each run. Each view would compile its templates again.
    """

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[str, CodeType | None]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its compiled code, if it was compiled before and has not changed."""
        checksum, code = self._compiled.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the compiled code of a template."""
        self._compiled[bucket.key] = bucket.checksum, bucket.code


_TEMPLATES: Final = _CompiledTemplates()


class _Templates(BaseLoader):
    """The templates of another loader, with addresses of other hosts taken out of them (``page_assets``)."""

    def __init__(self, loader: BaseLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return a template's text, and what Jinja wants to know of its file."""
        source, name, fresh = self._loader.get_source(environment, template)
        return "" if template in _LEFT_OUT else page_assets.own(source), name, fresh


_LEFT_OUT: Final = {"cloud-footer.j2"}
"""Templates with nothing but advertisements."""

WARNED: ContextVar[frozenset[str]] = ContextVar("warned", default=frozenset())
"""Pages of results with warnings and without failures, as the index names them."""


class _OwnPageView(DefaultJinjaPageView):  # type: ignore[misc]
    """A page that asks for files of its own site alone, and whose templates are compiled once a process."""

    def __init__(self) -> None:
        super().__init__()
        if self.env.loader:
            self.env.loader = _Templates(self.env.loader)
        self.env.bytecode_cache = _TEMPLATES
        # Great Expectations puts the id of the folder and the time of rendering behind the addresses of pictures.
        self.env.filters["add_data_context_id_to_url"] = lambda address: address


def compile_templates() -> None:
    """Compile all templates, for a process whose forks write pages: each would compile what it renders again."""
    environment = _OwnPageView().env
    for name in PackageLoader("great_expectations", "render/view/templates").list_templates():
        if name.endswith(".j2"):
            environment.get_template(name)


class IndexPageView(_OwnPageView, DefaultJinjaIndexPageView):  # type: ignore[misc]
    """The index."""

    def render(self, document: RenderedDocumentContent, template: str | None = None, **settings: object) -> str:
        """Return the page's HTML; results with warnings are marked as such."""
        page = self._get_template(template or self._template)
        shown = document.to_json_dict()
        for row in _rows(shown):
            if row["_table_row_link_path"] in WARNED.get():
                row |= {"_validation_success_text": "Warned"}
                _recolour(row["validation_success"], _SUCCEEDED)
        return str(page.render(shown, vendor="", **settings))


class InertPageView(_OwnPageView):
    """A page on which a column's name is plain text everywhere, and never HTML.

    Great Expectations escapes the parameters of its sentences, but not headings, navigation and cells.
    """

    def render(self, document: RenderedDocumentContent, template: str | None = None, **settings: object) -> str:
        """Return the page's HTML. Where no blocking check failed, what failed is marked as a warning."""
        page = self._get_template(template or self._template)
        shown = document.to_json_dict()
        if _is_success(shown) and _recolour(shown, _FAILED):
            _say_warned(shown)
        deep = str(shown.get("expectation_suite_name") or "").count(".") + 1
        deep += 0 if "ExpectationSuite" in str(shown.get("renderer_type")) else 3
        return str(page.render(_inert(shown), vendor="../" * deep, **settings))


_SUCCEEDED, _FAILED, _WARNING = "fa-check-circle", "fa-times", ["fas", "fa-exclamation-triangle", "text-warning"]
"""Icons of Font Awesome."""


def _nodes(node: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON of any depth
    """Yield every object of a document."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(child)


def _rows(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (node for node in _nodes(document) if {"_table_row_link_path", "validation_success"} <= node.keys())


def _recolour(document: dict[str, Any], icon: str) -> bool:
    """Make warnings of icons of one kind; return whether there were any."""
    found = [node for node in _nodes(document) if icon in (node.get("classes") or ())]
    for node in found:
        node["classes"] = list(_WARNING)
    return bool(found)


def _is_success(document: dict[str, Any]) -> bool:
    return any(_SUCCEEDED in str(node.get("html_success_icon", "")) for node in _nodes(document))


def _say_warned(document: dict[str, Any]) -> None:
    for node in _nodes(document):
        if "html_success_icon" in node:
            icon = " ".join(_WARNING)
            node |= {"html_success_icon": f'<i class="{icon}" aria-hidden="true"></i>', "success": "Warned"}


def _inert(node: Any) -> Any:  # noqa: ANN401 - JSON of any depth
    if isinstance(node, str):
        return html.escape(node, quote=False)
    if isinstance(node, dict):
        done = {"params", "styling"}  # the first are escaped later, the second are Great Expectations' own
        return {key: value if key in done else _inert(value) for key, value in node.items()}
    return [_inert(value) for value in node] if isinstance(node, list) else node
