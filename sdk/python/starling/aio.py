"""The client for asyncio: the same calls, each in a thread of its own, so that nothing else has to wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, AsyncIterator, List, Optional, Union

from .client import Client, Config, Job
from .models import JobInfo, Metric, Plan

_END = object()


class AsyncClient:
    """As Client."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, **options: Any):
        self._client = Client(url, token, **options)

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def plan(self, config: Config, max_budget: Optional[float] = None, **overrides: Any) -> Plan:
        return await asyncio.to_thread(self._client.plan, config, max_budget, **overrides)

    async def submit(self, config: Config, max_budget: Optional[float] = None, **options: Any) -> "AsyncJob":
        return AsyncJob(await asyncio.to_thread(self._client.submit, config, max_budget, **options))

    async def train(self, config: Config, max_budget: Optional[float] = None, *, timeout: Optional[float] = None, **options: Any) -> "AsyncJob":
        return await (await self.submit(config, max_budget, **options)).wait(timeout)

    async def job(self, id: str) -> "AsyncJob":
        return AsyncJob(await asyncio.to_thread(self._client.job, id))

    async def jobs(self) -> List["AsyncJob"]:
        return [AsyncJob(j) for j in await asyncio.to_thread(self._client.jobs)]


class AsyncJob:
    """As Job."""

    def __init__(self, job: Job):
        self._job = job

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def info(self) -> JobInfo:
        return self._job.info

    async def refresh(self) -> "AsyncJob":
        await asyncio.to_thread(self._job.refresh)
        return self

    async def stream(self) -> AsyncIterator[Metric]:
        source = self._job.stream()
        while True:
            m = await asyncio.to_thread(next, source, _END)
            if m is _END:
                return
            yield m  # type: ignore[misc]

    async def wait(self, timeout: Optional[float] = None) -> "AsyncJob":
        await asyncio.to_thread(self._job.wait, timeout)
        return self

    async def metrics(self) -> List[Metric]:
        return await asyncio.to_thread(self._job.metrics)

    async def cancel(self) -> "AsyncJob":
        await asyncio.to_thread(self._job.cancel)
        return self

    async def export(self, target: Union[str, Path], files: Optional[List[str]] = None) -> List[Path]:
        return await asyncio.to_thread(self._job.export, target, files)

    def _repr_html_(self) -> str:
        return self._job._repr_html_()
