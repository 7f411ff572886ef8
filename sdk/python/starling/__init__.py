"""Train models on Starling from Python.

    >>> import starling
    >>> client = starling.Client()                          # doctest: +SKIP
    >>> job = client.train("job.yaml", max_budget=25)       # doctest: +SKIP
    >>> job.metrics()[-1].eval_loss                         # doctest: +SKIP

A `Client` talks to the REST API of a server (`starling web`), or, without a URL, runs the `starling` program on this
machine, or, with network and home, orders on a network. All give a `Job`: `stream` its metrics, `wait` for it, `export` what it left.
`Trainer` is a trainer in the shape of Hugging Face's, and `AsyncClient` is the same as `Client` for asyncio. The standard library is all
that they need.
"""

from .aio import AsyncClient, AsyncJob
from .client import Client, Job
from .errors import JobFailed, NotSupported, StarlingError, Unreachable
from .models import JobInfo, Metric, Plan
from .trainer import Trainer, TrainOutput

__all__ = [
    "AsyncClient", "AsyncJob", "Client", "Job", "JobFailed", "JobInfo", "Metric", "NotSupported", "Plan", "StarlingError",
    "TrainOutput", "Trainer", "Unreachable",
]
