"""What a running pool tells, in the order in which it happens."""

from dataclasses import dataclass

from gradcheck.model.job import Job
from gradcheck.model.result import Result


@dataclass(frozen=True, slots=True)
class Started:
    """A worker has taken a job."""

    job: Job
    worker: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A job has its result."""

    result: Result


Event = Started | Finished
