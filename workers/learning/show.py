"""Show what the engine builds from a config: ``python -m workers.learning.show CONFIG``; see ``--help``.

CONFIG is the name of an algorithm or a JSON file. The environment's spaces come from a workload's spec (JSON), or as
plain lengths of observation and actions. Exit status 2: what was asked for can't be read or built; the reason is said.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from gymnasium import spaces
from pydantic import ValidationError

from app.kinds.registry import parse_spec
from workers import plugins
from workers.learning.agent import make_agent
from workers.learning.algorithms import registry
from workers.learning.algorithms.config import Config, encode
from workers.learning.backends import BackendError
from workers.learning.build import Bound, BuildError
from workers.learning.describe import describe
from workers.learning.drawing import FORMATS
from workers.learning.spaces import reals


class WrongInput(Exception):
    """The command line names something that can't be used."""


def main(arguments: list[str]) -> int:
    """Print the built graph; return the exit status."""
    wanted = _parser().parse_args(arguments)
    try:
        config = read_config(wanted.config)
        observation, actions, advice = _spaces(wanted)
        agent = make_agent(config, observation, actions, advice, np.random.default_rng(0))
    except (WrongInput, BuildError, BackendError, ValueError) as error:
        print(f"steward agent graph: {error}", file=sys.stderr)
        return 2
    bound = getattr(agent.learner, "bound", None)
    if not isinstance(bound, Bound):
        print(f"{wanted.config}: a table of [cells, {actions.n} actions], no graph. {encode(config).decode()}")
        return 0
    print(FORMATS[wanted.format](describe(bound)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="steward agent graph", description="Show the graph that a config builds.")
    parser.add_argument("config", help="name of an algorithm, or a JSON file")
    parser.add_argument("--workload", type=Path, help="JSON file with a workload's spec, which gives the spaces")
    parser.add_argument("--observation", help="length of the observation, or candidates x features, as in 12x5")
    parser.add_argument("--actions", type=int, help="number of actions")
    parser.add_argument("--format", choices=FORMATS, default="text")
    return parser


def read_config(name: str) -> Config:
    """Return the config of an algorithm's name or of a JSON file; raises WrongInput."""
    path = Path(name)
    if path.suffix != ".json" and not path.is_file():
        try:
            return registry.algorithm(name).config
        except registry.UnknownAlgorithm as error:
            raise WrongInput(str(error.args[0])) from error
    try:
        return registry.decode(path.read_bytes())
    except OSError as error:
        raise WrongInput(f"can't read {name}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise WrongInput(f"{name} is no config: {error}") from error


def _spaces(wanted: argparse.Namespace) -> tuple[spaces.Box, spaces.Discrete, slice | None]:
    """Return observation space, action space, and where the observation holds advice."""
    if wanted.workload is not None:
        if wanted.observation is not None or wanted.actions is not None:
            raise WrongInput("give either --workload, or --observation and --actions")
        spec = _spec(wanted.workload)
        observation, action, advice = plugins.load(plugins.LEARNED_KINDS, spec.kind).spaces(spec)
        return observation, action, advice
    if wanted.observation is None or wanted.actions is None:
        raise WrongInput("the spaces are missing: give --workload, or --observation and --actions")
    if wanted.actions < 1:
        raise WrongInput(f"--actions is {wanted.actions}, must be 1 or more")
    return reals(*_shape(wanted.observation)), spaces.Discrete(wanted.actions), None


def _shape(said: str) -> list[int]:
    parts = said.split("x")
    if len(parts) > 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise WrongInput(f"--observation is {said!r}, must be a length (16), or candidates x features (12x5)")
    return [int(part) for part in parts]


def _spec(path: Path) -> Any:
    try:
        found: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise WrongInput(f"can't read {path}: {error.strerror}") from error
    except ValueError as error:
        raise WrongInput(f"{path} is no JSON: {error}") from error
    try:
        return parse_spec(found.get("spec", found) if isinstance(found, dict) else found)
    except ValidationError as error:
        fields = "; ".join(f"{'/'.join(map(str, e['loc'])) or 'the whole'}: {e['msg']}" for e in error.errors())
        raise WrongInput(f"{path} is no spec of a workload: {fields}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
