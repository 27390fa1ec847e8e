"""The exact KL divergence of our fits that end early, against seconds."""

from typing import Any

import numpy as np

from acctsne import Affinities
from contestants import Task
from convergence import ours


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    task = Task(
        X=np.load(job["X"]),
        init=np.load(job["init"]),
        threads=job["threads"],
        seed=job["seed"],
        max_iter=job["max_iter"],
        perplexity=job["perplexity"],
    )
    P = Affinities.from_data(task.X, perplexity=task.perplexity, n_jobs=task.threads)
    return {"status": "ok", **ours(P, task)}
