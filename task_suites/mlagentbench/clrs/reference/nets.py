"""A network that may copy: at step k every pair of nodes keeps its state or takes that of the path
over node k."""

import torch
from torch import nn


def build_model(settings):
    """What train.py trains and the evaluator loads; `settings` is the content of
    checkpoints/settings.json."""
    return CopyingNet(settings["hidden"])


class CopyingNet(nn.Module):
    """Learns when to take the path over node k, from what is known of the three pairs (i, j), (i,
    k) and (k, j)."""

    def __init__(self, hidden):
        super().__init__()
        self.gate = nn.Sequential(
            nn.Linear(6, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )
        self.known = nn.Linear(3, 1)
        self.length = nn.Linear(2, 1)
        nn.init.ones_(self.length.weight)

    def forward(self, weights):
        """Weights (graphs, n, n), 0 where there is no edge -> scores (graphs, n, n, n) of each
        pointer's target."""
        return self.unroll(weights)[-1][0]

    def unroll(self, weights, truth=None):
        """The decoded state after every step: scores of pointers, lengths, logits of known.

        With `truth` (the algorithm's states after every step) each step starts from the right
        state; without, from the one decoded before, with its decisions made."""
        graphs, n, _ = weights.shape
        lengths, known = weights, ((weights != 0) | torch.eye(n, dtype=torch.bool)).float()
        pointers = torch.eye(n)[None, :, None].expand(graphs, n, n, n)
        decoded = []
        for k in range(n):
            to_k, from_k = (
                lengths[:, :, k : k + 1].expand_as(lengths),
                lengths[:, k : k + 1].expand_as(lengths),
            )
            reached = known[:, :, k : k + 1] * known[:, k : k + 1]
            detour = self.length(torch.stack([to_k, from_k], dim=-1)).squeeze(-1)
            pairs = torch.stack(
                [lengths, detour, lengths - detour, known, reached, known * reached], dim=-1
            )
            take = self.gate(pairs).sigmoid()
            if truth is None:
                take = take.round()
            pointers = (1 - take) * pointers + take * pointers[:, k : k + 1]
            take = take.squeeze(-1)
            lengths = (1 - take) * lengths + take * detour
            logits = self.known(torch.stack([known, reached, known * reached], dim=-1)).squeeze(-1)
            known = logits.sigmoid().round()
            decoded.append(((pointers + 1e-6).log(), lengths, logits))
            if truth is not None and k < n - 1:
                pointers = nn.functional.one_hot(truth[0][k], n).float()
                lengths, known = truth[1][k], truth[2][k]
        return decoded
