"""Dask's scheduler and workers on machines that are reached over ssh.

Dask's own SSHCluster passes settings on a command line, which every user of the machine can read. Here they come over
standard input, because they hold the key of the cluster.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import shlex
import signal
import sys
import threading
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

import dask
from distributed.deploy import spec

from bakeoff.campaign.deploy import ENVIRONMENT

if TYPE_CHECKING:
    from distributed import Security

# Any: distributed gives it no types.
_Interface: Any = spec.ProcessInterface

_PATIENCE_S: Final = 60.0
"""A machine may take this long to connect, and to start a process."""
_TLS: Final = {
    "ca-file": "tls_ca_file",
    "client.cert": "tls_client_cert",
    "client.key": "tls_client_key",
    "scheduler.cert": "tls_scheduler_cert",
    "scheduler.key": "tls_scheduler_key",
    "worker.cert": "tls_worker_cert",
    "worker.key": "tls_worker_key",
}
"""Dask's settings (distributed.comm.tls) by the attribute of its Security."""


class StartError(Exception):
    """A scheduler or a worker did not start on its machine; `deploy.start` names the option."""


class _Remote(_Interface):  # type: ignore[misc]
    """A process of Dask on another machine, which ends with its connection."""

    announced = ""
    """The words before the address that the process writes to standard error."""

    def __init__(self, scheduler: str | None, host: str, security: Security, name: object = None) -> None:
        super().__init__(scheduler=scheduler, name=name)
        self._scheduler = scheduler
        self._host = host
        self._security = security
        self._connection: Any = None
        self._process: Any = None
        self._drained: asyncio.Future[None] | None = None

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The process in the form that `distributed.cli.dask_spec` takes."""

    async def start(self) -> None:
        """Connect and start the process. StartError or OSError if that fails, or takes too long."""
        import asyncssh

        try:
            async with asyncio.timeout(_PATIENCE_S):
                self._connection = await asyncssh.connect(self._host)
                self.address = await self._started()
        except asyncssh.Error as error:
            raise StartError(f"{self._host}: {error.reason}") from error
        except TimeoutError:
            raise StartError(
                f"{self._host}: timeout: no {type(self).__name__.lower()} within {_PATIENCE_S:g} s"
            ) from None
        await super().start()

    async def _started(self) -> str:
        """Start the process; its address."""
        words = [sys.executable, "-m", __name__, *([self._scheduler] if self._scheduler else [])]
        self._process = await self._connection.create_process(shlex.join([*words, "--spec", json.dumps(self.spec())]))
        self._process.stdin.write(f"{dask.config.serialize(_settings(self._security))}\n")
        last = ""
        while line := await self._process.stderr.readline():
            _, found, address = line.partition(self.announced)
            if found:
                self._drained = asyncio.ensure_future(self._drain())
                return str(address.strip().removeprefix("'").removesuffix("'"))
            last = line.strip() or last
        raise StartError(f"{self._host}: the {type(self).__name__.lower()} exited at startup: {last}")

    async def _drain(self) -> None:
        """Read on, so that the process never waits for room for its log."""
        while await self._process.stderr.readline():
            pass

    async def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
        await super().close()


class Scheduler(_Remote):
    """Dask's scheduler on a machine."""

    announced = "Scheduler at:"

    def __init__(self, host: str, security: Security) -> None:
        super().__init__(None, host, security)

    def spec(self) -> dict[str, Any]:
        """A port that is free, for the dashboard too."""
        return {"cls": "distributed.Scheduler", "opts": {"port": 0, "dashboard_address": ":0"}}


class Worker(_Remote):
    """A worker with one thread on a machine."""

    announced = "worker at:"

    def spec(self) -> dict[str, Any]:
        """In a process that Dask starts again if it dies."""
        return {"cls": "distributed.Nanny", "opts": {"nthreads": 1, "env": ENVIRONMENT}}


def _settings(security: Security) -> dict[str, Any]:
    """The settings of Dask that are in effect here, with the key and the certificate."""
    tls = {f"distributed.comm.tls.{setting}": getattr(security, name) for setting, name in _TLS.items()}
    with dask.config.set({**tls, "distributed.comm.require-encryption": True}):
        return copy.deepcopy(dask.config.global_config)


def main() -> None:
    """On the machine: read the settings from standard input, be the process, and end when standard input ends."""
    from distributed.cli import dask_spec

    dask.config.update(dask.config.global_config, dask.config.deserialize(sys.stdin.readline()))

    def end() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    dask_spec.main()


if __name__ == "__main__":
    main()
