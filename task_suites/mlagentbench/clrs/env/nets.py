"""The network: encode the state of the algorithm, process it, decode the next state; as many steps
as nodes."""

import torch
from processors import TripletMPNN
from torch import nn


def build_model(settings):
    """What train.py trains and the evaluator loads; `settings` is the content of
    checkpoints/settings.json."""
    return Net(settings["hidden"])


class Net(nn.Module):
    """Imitates the algorithm of Floyd and Warshall."""

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.encode_nodes = nn.Linear(2, hidden)  # position, whether it is the node of this step
        self.encode_edges = nn.Linear(
            5, hidden
        )  # weight, edge, and the state: length, known, pointer
        self.processor = TripletMPNN(hidden)
        self.lengths = PairDecoder(hidden)
        self.known = PairDecoder(hidden)
        self.pointers = PointerDecoder(hidden)

    def forward(self, weights):
        """Weights (graphs, n, n), 0 where there is no edge -> scores (graphs, n, n, n) of each
        pointer's target."""
        return self.unroll(weights)[-1][0]

    def unroll(self, weights):
        """The decoded state after every step: scores of pointers, lengths, logits of known."""
        graphs, n, _ = weights.shape
        position = torch.arange(n, device=weights.device) / n
        edges = ((weights != 0) | torch.eye(n, dtype=torch.bool, device=weights.device)).float()
        state = (position[:, None].expand(graphs, n, n), weights, edges)
        hidden = weights.new_zeros(graphs, n, self.hidden)
        decoded = []
        for k in range(n):
            current = torch.zeros(n, device=weights.device)
            current[k] = 1.0
            nodes = self.encode_nodes(torch.stack([position, current], dim=-1)).expand(
                graphs, n, self.hidden
            )
            pairs = self.encode_edges(
                torch.stack([weights, edges, state[1], state[2], state[0]], dim=-1)
            )
            hidden, messages = self.processor(nodes, pairs, hidden)
            z = torch.cat([nodes, hidden], dim=-1)
            pointers = self.pointers(z, messages)
            lengths, known = self.lengths(z, messages), self.known(z, messages)
            decoded.append((pointers, lengths, known))
            state = ((pointers.softmax(dim=-1) * position).sum(dim=-1), lengths, known.sigmoid())
        return decoded


class PairDecoder(nn.Module):
    """A number for every pair of nodes."""

    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(2 * hidden, 1)
        self.second = nn.Linear(2 * hidden, 1)
        self.edge = nn.Linear(hidden, 1)

    def forward(self, z, edges):
        return (self.first(z)[:, :, None] + self.second(z)[:, None] + self.edge(edges)).squeeze(-1)


class PointerDecoder(nn.Module):
    """For every pair of nodes a score of every node."""

    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(2 * hidden, hidden)
        self.second = nn.Linear(2 * hidden, hidden)
        self.edge = nn.Linear(hidden, hidden)
        self.target = nn.Linear(2 * hidden, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, z, edges):
        pairs = self.first(z)[:, :, None] + self.second(z)[:, None] + self.edge(edges)
        return self.score(
            torch.maximum(pairs[:, :, :, None], self.target(z)[:, None, None])
        ).squeeze(-1)
