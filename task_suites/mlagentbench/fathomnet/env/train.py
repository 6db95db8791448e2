"""Train a convolutional network to name the animals in underwater images and write
submission.csv."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from PIL import Image

IMAGE_SIZE = 48
CATEGORIES = 290
BATCH_SIZE = 64
EPOCHS = 1
VALIDATION_SHARE = 0.3
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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for outputs in (16, 32, 64, 64):
            layers += [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.BatchNorm2d(outputs)]
            layers += [nn.MaxPool2d(2), nn.Dropout(0.2)]
            inputs = outputs
        self.features = nn.Sequential(*layers, nn.Flatten())
        size = 64 * (IMAGE_SIZE // 16) ** 2
        self.head = nn.Sequential(
            nn.Linear(size, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Dropout(0.5),
        )
        self.out = nn.Linear(64, CATEGORIES)

    def forward(self, x):
        return self.out(self.head(self.features(x)))


def predict(model, images):
    """Probabilities of the categories for every image."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part.to(device)).sigmoid().cpu() for part in images.split(256)])


if __name__ == "__main__":
    train_table = pd.read_csv("multilabel_classification/train.csv")
    test_ids = pd.read_csv("sample_submission.csv")["id"]
    images, targets = load_images(train_table["id"]), load_targets(train_table)
    cut = int(len(images) * (1 - VALIDATION_SHARE))

    model = Net().to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(EPOCHS):
        model.train()
        for part in torch.randperm(cut).split(BATCH_SIZE):
            optimizer.zero_grad()
            loss = criterion(model(images[part].to(device)), targets[part].to(device))
            loss.backward()
            optimizer.step()
        validation = nn.functional.binary_cross_entropy(
            predict(model, images[cut:]), targets[cut:]
        ).item()
        print(
            f"epoch {epoch + 1}: last loss {loss.item():.4f}, validation loss {validation:.4f}",
            flush=True,
        )

    ranking = predict(model, load_images(test_ids)).argsort(dim=1, descending=True)[:, :RANKED] + 1
    submission = pd.DataFrame(
        {"id": test_ids, "categories": [" ".join(map(str, row.tolist())) for row in ranking]}
    )
    submission["osd"] = 1.0
    submission.to_csv("submission.csv", index=False)
