"""Train a convolutional network to name the animals in underwater images and write submission.csv.

Against the starter: a network that takes the maximum over all places, since an animal may be
anywhere; no dropout, more epochs and all images; mirror images would not help, as the animals are
not symmetric. The out-of-sample score is how little light the water has got: training images come
from less deep water, and red light goes first."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from PIL import Image

IMAGE_SIZE = 48
CATEGORIES = 290
BATCH_SIZE = 32
EPOCHS = 8
RANKED = 20

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_images(names):
    """Images as floats from 0 to 1 in shape (n, 3, IMAGE_SIZE, IMAGE_SIZE)."""
    images = []
    for name in names:
        with Image.open(Path("images") / f"{name}.png") as image:
            images.append(np.asarray(image.convert("RGB").resize((IMAGE_SIZE, IMAGE_SIZE))))
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255


def load_targets(table):
    """One row an image, one column a category: 1 where the image shows it."""
    targets = torch.zeros(len(table), CATEGORIES)
    for row, categories in enumerate(table["categories"]):
        for category in json.loads(categories):
            targets[row, int(category) - 1] = 1
    return targets


def block(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *block(3, 16),
            nn.MaxPool2d(2),
            *block(16, 48),
            nn.MaxPool2d(2),
            *block(48, 96),
            *block(96, 96),
        )
        self.out = nn.Linear(96, CATEGORIES)
        nn.init.constant_(self.out.bias, -4.0)  # most categories are in few images

    def forward(self, x):
        return self.out(self.features(x).amax(dim=(2, 3)))


def darkness(images):
    """From 0 to 1: the rank of the water's gradient from top to bottom, relative to its blue."""
    rows = images.median(dim=3).values
    light = (rows[:, :, :8].mean(dim=2) - rows[:, :, -8:].mean(dim=2)).sum(dim=1) / rows[:, 2].mean(
        dim=1
    )
    return (-light).argsort().argsort().float() / (len(images) - 1)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_table = pd.read_csv("multilabel_classification/train.csv")
    test_ids = pd.read_csv("sample_submission.csv")["id"]
    images, targets = load_images(train_table["id"]), load_targets(train_table)
    steps = EPOCHS * -(-len(images) // BATCH_SIZE)

    model = Net().to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    for epoch in range(EPOCHS):
        model.train()
        for part in torch.randperm(len(images)).split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = criterion(model(images[part].to(device)), targets[part].to(device))
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: last loss {loss.item():.4f}", flush=True)

    model.eval()
    test_images = load_images(test_ids)
    with torch.no_grad():
        scores = torch.cat([model(part.to(device)).cpu() for part in test_images.split(256)])
    ranking = scores.argsort(dim=1, descending=True)[:, :RANKED] + 1
    submission = pd.DataFrame(
        {"id": test_ids, "categories": [" ".join(map(str, row.tolist())) for row in ranking]}
    )
    submission["osd"] = darkness(test_images).numpy()
    submission.to_csv("submission.csv", index=False)
