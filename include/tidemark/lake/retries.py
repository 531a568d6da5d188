"""Commits that only have to queue: done again after a while, from any number of threads."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

_Arguments = ParamSpec("_Arguments")

_Result = TypeVar("_Result")


def retried(
    *errors: type[Exception], attempts: int = 8
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Call a function again that raised one of ``errors``: so often in all, then the error is raised.

    tenacity's own decorator shares one record of its attempts among threads, and a call that begins empties it under
    one that is waiting (``KeyError: 'idle_for'``, seen with 9.2.1). Here each call has a record of its own.
    """

    def decorated(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @functools.wraps(function)
        def patiently(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            retrying = Retrying(
                retry=retry_if_exception_type(errors),
                wait=wait_random_exponential(multiplier=0.05, max=2),
                stop=stop_after_attempt(attempts),
                reraise=True,
            )
            return retrying(function, *args, **kwargs)

        return patiently

    return decorated
