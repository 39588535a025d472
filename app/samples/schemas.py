"""What crosses the API about samples."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class Rejection(BaseModel):
    """A rejected execution, and why."""

    execution: str
    line: int = Field(description="Line of the file, counting from 1; for application/json the number of the sample.")
    field: str = Field(description="JSON pointer into the report.", examples=["/metrics/iteration_seconds"])
    reason: str = Field(examples=["must be a finite number greater than 0"])
    value: Any = None


class Remark(BaseModel):
    """Something in a trace that looks wrong or was repaired."""

    execution: str
    pointer: str = Field(description="Line or JSON pointer of the first or worst case.", examples=["/lines/12/runtime"])
    message: str
    value: Any = None


class SkippedLines(BaseModel):
    """Lines of a trace skipped for one reason, with `skip_bad`."""

    field: str = Field(description="Invalid column; empty for a whole line.", examples=["runtime"])
    reason: str = Field(examples=["must be a number of seconds from 0, or -1 where it is unknown"])
    count: int = Field(description="Number of lines.")
    lines: list[int] = Field(description="Numbers of the first 20 lines, counting from 1.")


class UploadRead(BaseModel):
    """Result of an upload."""

    accepted: int = Field(description="Executions stored.")
    duplicate: int = Field(description="Executions already stored with the same content.")
    rejected: int = Field(description="Executions of which nothing was stored.")
    iterations: int = Field(description="Iterations of the accepted executions; for traces, tasks.")
    rejections: list[Rejection] = Field(description="Reasons, one per rejected execution; the first 1,000.")
    lacks: list[str] = Field(default=[], description="Information missing from a trace, and its consequences.")
    warnings: list[Remark] = Field(default=[], description="What looks wrong in a trace or was left out.")
    skipped: list[SkippedLines] = Field(
        default=[], description="Lines skipped with `skip_bad`, by reason, most frequent first; at most 21."
    )


class StoredExecution(BaseModel):
    """A stored execution that can't be read, as stored."""

    kind: str
    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Number of iterations; for a trace, of tasks.")
    created_at: datetime
    problem: str = Field(description="Why it can't be read, e.g. its kind isn't installed.")
