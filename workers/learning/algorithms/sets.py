"""Networks over candidate sets, from configs of either family."""

from workers.learning.algorithms.config.shared import Network, Scorer
from workers.learning.components import scorer as components


def encoder(wanted: Scorer, network: Network) -> components.SetEncoder:
    """Return a new encoder of candidates."""
    return components.SetEncoder(wanted.layers, wanted.context, wanted.joint, network.activation)


def scorer(
    wanted: Scorer, network: Network, advice: slice | None, temperature: float = 1.0, output: str = "values"
) -> components.Scorer:
    """Return the network that scores candidates. Raises ValueError for advice that is not one feature of each."""
    if advice is not None and advice.stop - advice.start != 1:
        raise ValueError(f"advice on candidates is one of their features, not [{advice.start}, {advice.stop})")
    return components.Scorer(encoder(wanted, network), advice.start if advice else None, temperature, output)


def critic(wanted: Scorer, network: Network) -> components.SetCritic:
    """Return the network that values a set."""
    return components.SetCritic(encoder(wanted, network))


def described(wanted: Scorer, network: Network, advice: slice | None) -> dict[str, object]:
    """Return the config of the exported policy, as `functions.scores` reads it."""
    return {**encoder(wanted, network).config, "advice": None if advice is None else [advice.start, advice.stop]}
