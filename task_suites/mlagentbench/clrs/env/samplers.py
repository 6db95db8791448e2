"""Random weighted graphs, and every step that the algorithm of Floyd and Warshall takes on them."""

import numpy as np

TRAINING_DENSITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def random_graphs(rng, count, size, densities=(0.5,)):
    """Undirected Erdos-Renyi graphs as matrices of weights (count, size, size); 0 where there is no
    edge."""
    density = rng.choice(densities, size=count)[:, None, None]
    edges = rng.random((count, size, size)) < density
    weights = rng.random((count, size, size))
    weights = np.sqrt(weights * weights.transpose(0, 2, 1) + 1e-3)
    return weights * (edges & edges.transpose(0, 2, 1))


def floyd_warshall(weights):
    """The pointers Pi, where Pi[i, j] is the node before j on the shortest path from i, and the
    steps to them.

    Step k of the three step arrays (first axis) is the state before paths over node k are
    considered: pointers, lengths of the known paths, and whether a path is known. Pi[i, j] is i
    where there is no path."""
    count, size, _ = weights.shape
    lengths = weights.copy()
    known = (weights != 0) | np.eye(size, dtype=bool)
    pointers = np.tile(np.arange(size)[:, None], (count, 1, size))
    steps = []
    for k in range(size):
        steps.append((pointers, lengths, known))
        detour = lengths[:, :, k : k + 1] + lengths[:, k : k + 1, :]
        possible = known[:, :, k : k + 1] & known[:, k : k + 1, :]
        better = possible & (~known | (detour < lengths))
        lengths = np.where(better, detour, lengths)
        pointers = np.where(better, pointers[:, k : k + 1, :], pointers)
        known = known | possible
    return pointers, [np.stack(part) for part in zip(*steps, strict=True)]
