"""Subjects of papers: train a network on a citation network's papers and write submission.csv."""

from pathlib import Path

import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F

DATA = Path("networks/ogbn_arxiv")
BATCH_SIZE = 1024
EPOCHS = 4

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load(name, dtype):
    """One of the data set's files as a tensor with a row a line."""
    return torch.tensor(pd.read_csv(DATA / f"{name}.csv.gz", header=None, dtype=dtype).to_numpy())


def load_split():
    """Numbers of the papers to train on, to validate on, and to predict."""
    return [load(f"split/time/{name}", "int64").flatten() for name in ("train", "valid", "test")]


class MLP(nn.Module):
    """Two layers; a paper's citations play no part."""

    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.first = nn.Linear(in_channels, hidden_channels)
        self.norm = nn.BatchNorm1d(hidden_channels)
        self.second = nn.Linear(hidden_channels, out_channels)

    def forward(self, x):
        return F.log_softmax(self.second(F.relu(self.norm(self.first(x)))), dim=-1)


def predict(model, x):
    """The most likely subject of every row."""
    model.eval()
    with torch.no_grad():
        return torch.cat(
            [model(part.to(device)).argmax(dim=-1).cpu() for part in x.split(BATCH_SIZE)]
        )


if __name__ == "__main__":
    x = load("raw/node-feat", "float32")
    y = load("raw/node-label", "int64").flatten()  # -1 for the papers to predict
    edges = load("raw/edge", "int64")  # citing and cited paper
    train, valid, test = load_split()
    print(
        f"{len(x)} papers, {len(edges)} citations; {len(train)} to train on, {len(valid)} to"
        " validate on"
    )

    model = MLP(in_channels=128, hidden_channels=16, out_channels=172).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1)

    for epoch in range(EPOCHS):
        model.train()
        for batch in train[torch.randperm(len(train))].split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = F.nll_loss(model(x[batch].to(device)), y[batch].to(device))
            loss.backward()
            optimizer.step()
        accuracy = (predict(model, x[valid]) == y[valid]).float().mean().item()
        print(
            f"epoch {epoch + 1}: last loss {loss.item():.4f}, validation accuracy {accuracy:.4f}",
            flush=True,
        )

    pd.DataFrame({"node": test, "label": predict(model, x[test])}).to_csv(
        "submission.csv", index=False
    )
