"""What a broken HTTP exchange says about the request: never left this machine, or nobody knows.

httpx's own transport and the one over aiohttp report the same faults differently; the latter calls a
server that hung up after it had the request a connect time-out, so its cause is looked at.
"""

from __future__ import annotations

import aiohttp
import httpx

# RequestError: also an answer that can't be unpacked, or that redirects for ever. A handler that let one through
# would be asked again every few seconds, for ever
BROKEN = (httpx.RequestError, aiohttp.ClientError, ConnectionError)


def never_left(error: BaseException) -> bool:
    """Whether no connection was made, so that the service can't have seen the request."""
    if isinstance(error, httpx.ConnectError | aiohttp.ClientConnectorError | ConnectionRefusedError):
        return True
    return error.__cause__ is not None and isinstance(error.__cause__, aiohttp.ClientConnectorError)


def timed_out(error: BaseException) -> bool:
    """Whether nothing came in time, as far as the transport can tell."""
    slow = isinstance(error, TimeoutError | httpx.ReadTimeout | httpx.WriteTimeout)
    return slow or isinstance(error.__cause__, TimeoutError)
