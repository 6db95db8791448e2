"""Every pointer at the first node of its pair."""

import torch
from torch import nn


def build_model(settings):
    return First()


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, weights):
        graphs, n, _ = weights.shape
        return torch.eye(n)[None, :, None].expand(graphs, n, n, n)
