"""Subjects of papers from features averaged over one and two steps of citations, and from
neighbours' subjects."""

from pathlib import Path

import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F

DATA = Path("networks/ogbn_arxiv")
CLASSES = 40
BATCH_SIZE = 128
EPOCHS = 10

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load(name, dtype):
    """One of the data set's files as a tensor with a row a line."""
    return torch.tensor(pd.read_csv(DATA / f"{name}.csv.gz", header=None, dtype=dtype).to_numpy())


def load_split():
    """Numbers of the papers to train on, to validate on, and to predict."""
    return [load(f"split/time/{name}", "int64").flatten() for name in ("train", "valid", "test")]


def averaged(x, edges):
    """For every paper the mean over the papers that it cites and those that cite it."""
    ends = torch.cat([edges, edges.flip(1)])
    degree = torch.bincount(ends[:, 0], minlength=len(x)).clamp(min=1)
    return torch.zeros_like(x).index_add_(0, ends[:, 0], x[ends[:, 1]]) / degree[:, None]


class MLP(nn.Module):
    """Two layers on everything that is known of a paper's surroundings."""

    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.scale = nn.BatchNorm1d(in_channels)
        self.first = nn.Linear(in_channels, hidden_channels)
        self.norm = nn.BatchNorm1d(hidden_channels)
        self.second = nn.Linear(hidden_channels, out_channels)

    def forward(self, x):
        x = F.dropout(self.scale(x), 0.3, self.training)
        x = F.dropout(F.relu(self.norm(self.first(x))), 0.5, self.training)
        return F.log_softmax(self.second(x), dim=-1)


def predict(model, x):
    """The most likely subject of every row."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part.to(device)).argmax(dim=-1).cpu() for part in x.split(4096)])


if __name__ == "__main__":
    torch.manual_seed(0)
    x = load("raw/node-feat", "float32")
    y = load("raw/node-label", "int64").flatten()
    edges = load("raw/edge", "int64")
    train, valid, test = load_split()

    known = torch.zeros(len(x), CLASSES)
    known[train, y[train]] = 1
    once = averaged(x, edges)
    # A paper's own subject never comes back to it: only its neighbours' are looked at, one step
    # away.
    inputs = torch.cat([x, once, averaged(once, edges), averaged(known, edges)], dim=1)

    model = MLP(inputs.shape[1], 256, CLASSES).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-4)
    steps = EPOCHS * -(-len(train) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
    for epoch in range(EPOCHS):
        model.train()
        for batch in train[torch.randperm(len(train))].split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = F.nll_loss(model(inputs[batch].to(device)), y[batch].to(device))
            loss.backward()
            optimizer.step()
            schedule.step()
        accuracy = (predict(model, inputs[valid]) == y[valid]).float().mean().item()
        print(
            f"epoch {epoch + 1}: last loss {loss.item():.4f}, validation accuracy {accuracy:.4f}",
            flush=True,
        )

    pd.DataFrame({"node": test, "label": predict(model, inputs[test])}).to_csv(
        "submission.csv", index=False
    )
