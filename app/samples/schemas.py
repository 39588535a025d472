"""What crosses the API about samples."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class Rejection(BaseModel):
    """An execution of which nothing was kept, and why."""

    execution: str
    line: int = Field(description="Line of the file, counting from 1; with application/json the number of the sample.")
    field: str = Field(description="JSON pointer into the report.", examples=["/metrics/iteration_seconds"])
    reason: str = Field(examples=["must be a finite number greater than 0"])
    value: Any = None


class Remark(BaseModel):
    """Something in a trace that looks wrong, or was mended."""

    execution: str
    pointer: str = Field(description="Line or JSON pointer of the first or worst case.", examples=["/lines/12/runtime"])
    message: str
    value: Any = None


class SkippedLines(BaseModel):
    """Lines that were left out of a trace for one reason, as `skip_bad` asks."""

    field: str = Field(description="The column that is wrong; empty for a whole line.", examples=["runtime"])
    reason: str = Field(examples=["must be a number of seconds from 0, or -1 where it is unknown"])
    count: int = Field(description="How many lines.")
    lines: list[int] = Field(description="The first 20 of them, counting from 1.")


class UploadRead(BaseModel):
    """What became of an upload."""

    accepted: int = Field(description="Executions stored.")
    duplicate: int = Field(description="Executions that were stored already, with the same content.")
    rejected: int = Field(description="Executions of which nothing was kept.")
    iterations: int = Field(description="Iterations of the accepted executions; of traces, tasks.")
    rejections: list[Rejection] = Field(description="Why, one per rejected execution; the first 1,000.")
    lacks: list[str] = Field(default=[], description="What a trace does not say, and what that means.")
    warnings: list[Remark] = Field(default=[], description="What looks wrong in a trace, or was left out of it.")
    skipped: list[SkippedLines] = Field(
        default=[], description="Lines left out with `skip_bad`, by reason, the most frequent first; at most 21."
    )


class StoredExecution(BaseModel):
    """A stored execution that can't be read here, as it is stored."""

    kind: str
    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Its iterations; of a trace, its tasks.")
    created_at: datetime
    problem: str = Field(description="Why it can't be read here, e.g. its kind isn't installed.")
