"""Repeats a call that lost a race: a commit that only has to wait its turn. Any number of threads may use it."""

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
    """Return a decorator that calls a function again if it raised one of ``errors``.

    After ``attempts`` calls in all, the error is raised.

    tenacity's own decorator shares one record of its attempts among threads: a call that begins empties the record of a
    call that is waiting (``KeyError: 'idle_for'``, seen with 9.2.1). Here each call has a record of its own.
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
