"""A training of one's own, which knows nothing of Steward: a network with one hidden layer learns two spirals."""

import argparse

import numpy as np


def spirals(rows: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of two spirals, [rows, 2], and which of them each is of, [rows]."""
    turns = np.sqrt(generator.random(rows)) * 3 * np.pi
    label = generator.integers(2, size=rows)
    angle = turns + np.pi * label
    points = np.stack([turns * np.cos(angle), turns * np.sin(angle)], axis=1)
    return points / 10 + generator.normal(0, 0.02, (rows, 2)), label


def train(epochs: int, rows: int, hidden: int) -> None:
    """Minibatches of gradient descent with momentum; a line for each epoch."""
    generator = np.random.default_rng(0)
    points, label = spirals(rows, generator)
    weights = [generator.normal(0, 1, (2, hidden)), np.zeros(hidden), generator.normal(0, hidden**-0.5, hidden)]
    speed = [np.zeros_like(one) for one in weights]
    for epoch in range(epochs):
        losses = []
        for batch in np.array_split(generator.permutation(rows), rows // 100):
            inputs, wanted = points[batch], label[batch]
            inner = np.tanh(inputs @ weights[0] * 3 + weights[1])
            sure = 1 / (1 + np.exp(-inner @ weights[2]))
            losses.append(-np.mean(np.log(np.where(wanted == 1, sure, 1 - sure) + 1e-9)))
            error = (sure - wanted) / len(batch)
            back = np.outer(error, weights[2]) * (1 - inner**2)
            slopes = (3 * inputs.T @ back, back.sum(axis=0), inner.T @ error)
            for number, slope in enumerate(slopes):
                speed[number] = 0.9 * speed[number] - 0.1 * slope
                weights[number] = weights[number] + speed[number]
        print(f"epoch {epoch + 1}/{epochs} loss={np.mean(losses):.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--hidden", type=int, default=256)
    train(**vars(parser.parse_args()))
