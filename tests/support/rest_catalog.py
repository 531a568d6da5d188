"""An Iceberg REST catalog on this machine: the part of the protocol that Tidemark and Spark use, over SQLite.

Requirements of a commit are checked by the server, in the step that changes the table, as the protocol wants it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

_STATUS = {
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    NamespaceAlreadyExistsError: 409,
    NamespaceNotEmptyError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """Serve a catalog with its warehouse in a folder, and give its address."""
    folder.mkdir(parents=True)
    catalog = SqlCatalog("served", uri=f"sqlite:///{folder}/catalog.db", warehouse=(folder / "warehouse").as_uri())
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"catalog": catalog}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        catalog.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    catalog: Catalog
    lock = threading.Lock()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the class it comes from
        """Write nothing to standard error."""

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._body = self.rfile.read(length)
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")[1:]]
        try:
            with self.lock:
                answer = self._answer(self.command, parts)
            self._send(204 if answer is None else 200, answer)
        except tuple(_STATUS) as error:
            status = _STATUS[type(error)]
            self._send(status, {"error": {"message": str(error), "type": type(error).__name__, "code": status}})

    do_GET = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _send(self, status: int, answer: dict[str, Any] | None) -> None:
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(self, method: str, parts: list[str]) -> dict[str, Any] | None:
        routes: dict[tuple[str, int], Callable[..., dict[str, Any] | None]] = {
            ("GET", 1): self._top,
            ("POST", 1): lambda _: self._create_namespace(),
            ("GET", 2): self._namespace,
            ("HEAD", 2): self._namespace,
            ("DELETE", 2): self._drop_namespace,
            ("GET", 3): self._tables,
            ("POST", 3): self._make,
            ("GET", 4): self._load,
            ("HEAD", 4): self._load,
            ("POST", 4): self._commit,
            ("DELETE", 4): self._drop,
            ("POST", 5): lambda _: None,  # Spark's figures of a scan
        }
        return routes[method, len(parts)](parts)

    def _top(self, parts: list[str]) -> dict[str, Any]:
        if parts == ["config"]:
            return {"defaults": {}, "overrides": {}}
        return {"namespaces": [list(each) for each in self.catalog.list_namespaces()]}

    def _create_namespace(self) -> dict[str, Any]:
        asked = json.loads(self._body)
        self.catalog.create_namespace(tuple(asked["namespace"]), asked.get("properties") or {})
        return {"namespace": asked["namespace"], "properties": {}}

    def _namespace(self, parts: list[str]) -> dict[str, Any]:
        return {"namespace": [parts[1]], "properties": dict(self.catalog.load_namespace_properties(parts[1]))}

    def _drop_namespace(self, parts: list[str]) -> None:
        self.catalog.drop_namespace(parts[1])

    def _tables(self, parts: list[str]) -> dict[str, Any]:
        found = self.catalog.list_tables(parts[1])
        return {"identifiers": [{"namespace": list(each[:-1]), "name": each[-1]} for each in found]}

    def _make(self, parts: list[str]) -> dict[str, Any]:
        if parts[2] == "register":
            asked = json.loads(self._body)
            return _loaded(self.catalog.register_table((parts[1], asked["name"]), asked["metadata-location"]))
        optional = {"location": None, "partition-spec": None, "write-order": None}
        table = CreateTableRequest.model_validate(optional | json.loads(self._body))
        made = self.catalog.create_table(
            (parts[1], table.name),
            table.table_schema,
            table.location,
            table.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            table.write_order or UNSORTED_SORT_ORDER,
            table.properties,
        )
        return _loaded(made)

    def _load(self, parts: list[str]) -> dict[str, Any]:
        if parts[2] != "tables":
            raise NoSuchTableError("there are no views")
        return _loaded(self.catalog.load_table((parts[1], parts[3])))

    def _commit(self, parts: list[str]) -> dict[str, Any]:
        name = {"identifier": {"namespace": [parts[1]], "name": parts[3]}}  # Java leaves it out
        asked = CommitTableRequest.model_validate(name | json.loads(self._body))
        table = self.catalog.load_table((parts[1], parts[3]))
        self.catalog.commit_table(table, asked.requirements, asked.updates)
        return _loaded(self.catalog.load_table((parts[1], parts[3])))

    def _drop(self, parts: list[str]) -> None:
        self.catalog.drop_table((parts[1], parts[3]))


def _loaded(table: Table) -> dict[str, Any]:
    metadata = json.loads(table.metadata.model_dump_json())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}
