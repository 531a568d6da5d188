"""Ends the sessions on a Spark Connect server that earlier tasks of a source left.

A task that was killed may have left work on the server, in the session that it had. A session knows and interrupts its
own work alone, and a source has another session every half hour.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import NAMESPACE_URL, uuid5

if TYPE_CHECKING:
    from pyspark.sql.connect.client import SparkConnectClient

EARLIER_SESSIONS_VARIABLE = "TIDEMARK_EARLIER_SESSIONS"
"""Environment variable with the ids of the sessions that the source of this process had, separated by commas."""


_SESSION_SECONDS: Final = 1800
"""How long a source has one session."""

_SESSIONS: Final = 49
"""How many sessions a task looks after: those of a day, and its own. In an earlier one, a task that worked for long may
have been killed just now."""


_PATIENCE: Final = 60.0
"""Seconds that the server has to end a session."""


def ids_of(source: str, now: float) -> list[str]:
    """Return the id of the session that a source has at a time, and those that it had before, the newest first."""
    newest = int(now // _SESSION_SECONDS)
    return [str(uuid5(NAMESPACE_URL, f"tidemark:{source}:{newest - back}")) for back in range(_SESSIONS)]


def earlier() -> list[str]:
    """Return the ids of the sessions that the source of this process had."""
    return [each for each in os.environ.get(EARLIER_SESSIONS_VARIABLE, "").split(",") if each]


def end(client: SparkConnectClient, sessions: Iterable[str]) -> None:
    """End sessions of the client's user: their work is interrupted, and nobody can join them again.

    One that the server does not have costs a question. To interrupt it instead would make it.

    Raises:
        PySparkException: the server did not answer. Work of an earlier task may go on there.
    """
    from pyspark.sql.connect.proto import ReleaseSessionRequest, UserContext  # noqa: PLC0415  seconds to import

    user = UserContext(user_id=client._user_id or "")  # noqa: SLF001  the client asks for its own session alone
    for each in sessions:
        request = ReleaseSessionRequest(session_id=each, user_context=user)
        try:
            client._stub.ReleaseSession(request, metadata=client._builder.metadata(), timeout=_PATIENCE)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001  the client makes its own error of one of gRPC, and raises others
            client._handle_error(error)  # noqa: SLF001
