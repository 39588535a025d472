"""What can go wrong while an agent is built.

BuildError
├── ComposeError              the graph refers to something that it does not hold
├── CompleteError             its spaces can't be completed
│   ├── IncompleteInputError  an input has no source, or its source has no space
│   ├── DeadLockError         components wait for each other
│   └── SpaceMismatchError    a component can't work on the space it is given
└── BindError                 the completed graph can't be put on the backend
"""


class BuildError(Exception):
    """An agent can't be built."""


class ComposeError(BuildError):
    """The graph refers to something that it does not hold."""


class CompleteError(BuildError):
    """The graph's spaces can't be completed."""


class IncompleteInputError(CompleteError):
    """A component's input has no source, or its source has no space."""


class DeadLockError(CompleteError):
    """Components wait for each other's outputs."""


class SpaceMismatchError(CompleteError):
    """A component can't work on the space it is given."""


class BindError(BuildError):
    """The completed graph can't be put on the backend."""
