"""The learning halves of all kinds that are installed: entry points of the group ``steward.learned_kinds``."""

from workers import plugins
from workers.kinds.contract import LearnedKind


def learned_kinds() -> tuple[str, ...]:
    """Names of the kinds that can be learned for, in order."""
    return plugins.names(plugins.LEARNED_KINDS)


def learned_kind(name: str) -> LearnedKind:
    """The learning half of a kind.

    Raises:
        PluginError: none of that name is installed, or it is broken: it can't be imported, lacks a part of the
            contract, or goes by another name.
    """
    found = plugins.load(plugins.LEARNED_KINDS, name)
    missing = [part for part in _PARTS if not hasattr(found, part)]
    if missing:
        raise plugins.PluginError(f"the learning half of kind {name!r} lacks {', '.join(missing)}")
    if found.name != name:
        raise plugins.PluginError(f"the learning half of kind {name!r} calls itself {found.name!r}")
    kind: LearnedKind = found
    return kind


_PARTS = sorted({*LearnedKind.__annotations__, *(part for part in vars(LearnedKind) if not part.startswith("_"))})
