"""Processors: one round of messages between the nodes of a graph."""

import torch
from torch import nn


def get_triplet_msgs(nodes, edges, node_layers, edge_layers):
    """Messages (graphs, k, i, j, features) about every triple of nodes, from their encodings and
    their three edges."""
    first, second, third = (layer(nodes) for layer in node_layers)
    ki, kj, ij = (layer(edges) for layer in edge_layers)
    return (
        first[:, :, None, None]
        + second[:, None, :, None]
        + third[:, None, None, :]
        + ki[:, :, :, None]
        + kj[:, :, None, :]
        + ij[:, None]
    )


class TripletMPNN(nn.Module):
    """A message-passing network with messages along edges for the nodes and about triples for the
    edges."""

    def __init__(self, hidden, triplet_features=8):
        super().__init__()
        self.sender = nn.Linear(2 * hidden, hidden)
        self.receiver = nn.Linear(2 * hidden, hidden)
        self.edge = nn.Linear(hidden, hidden)
        self.message = nn.Sequential(
            nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)
        )
        self.node_out = nn.Linear(2 * hidden, hidden)
        self.message_out = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.triplet_nodes = nn.ModuleList(
            nn.Linear(2 * hidden, triplet_features) for _ in range(3)
        )
        self.triplet_edges = nn.ModuleList(nn.Linear(hidden, triplet_features) for _ in range(3))
        self.triplet_out = nn.Linear(triplet_features, hidden)

    def forward(self, nodes, edges, hidden):
        """Encoded nodes (graphs, n, h), edges (graphs, n, n, h) and hidden states -> new hidden
        states, edges."""
        z = torch.cat([nodes, hidden], dim=-1)
        triplets = get_triplet_msgs(z, edges, self.triplet_nodes, self.triplet_edges)
        new_edges = torch.relu(self.triplet_out(triplets.amax(dim=1)))
        messages = self.message(
            self.sender(z)[:, :, None] + self.receiver(z)[:, None] + self.edge(edges)
        )
        new_hidden = torch.relu(self.node_out(z) + self.message_out(messages.amax(dim=1)))
        return self.norm(new_hidden), new_edges
