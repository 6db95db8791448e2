"""Train a pixel-wise classifier on false-colour images of contrails and write submission.csv."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from encode import rle_encode
from torch.utils.data import DataLoader, Dataset

LABELLED_FRAME = 4
BATCH_SIZE = 8
EPOCHS = 1
LEARNING_RATE = 1e-5

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def normalised(values, low, high):
    return (values - low) / (high - low)


def false_colour(folder):
    """Red, green and blue from the infrared bands 11, 14 and 15 of the labelled frame, each from 0
    to 1."""
    band = {
        n: np.load(folder / f"band_{n}.npy")[..., LABELLED_FRAME].astype(np.float32)
        for n in (11, 14, 15)
    }
    red = normalised(band[15] - band[14], -4, 2)
    green = normalised(band[14] - band[11], -4, 5)
    blue = normalised(band[14], 243, 303)
    return np.clip(np.stack([red, green, blue]), 0, 1)


class Records(Dataset):
    """False-colour images and, for training, their masks."""

    def __init__(self, folder, with_masks):
        self.folders = sorted(Path(folder).iterdir())
        self.with_masks = with_masks

    def __len__(self):
        return len(self.folders)

    def __getitem__(self, number):
        image = torch.from_numpy(false_colour(self.folders[number]))
        if not self.with_masks:
            return image, self.folders[number].name
        mask = np.load(self.folders[number] / "human_pixel_masks.npy")[..., 0]
        return image, torch.from_numpy(mask.astype(np.int64))


def dice(predicted, truth):
    """Of all pixels together."""
    return 2 * (predicted * truth).sum().item() / max(1, (predicted.sum() + truth.sum()).item())


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Conv2d(3, 2, 1).to(device)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.57, 4.17], device=device))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    loader = DataLoader(Records("train", with_masks=True), batch_size=BATCH_SIZE, shuffle=True)

    for epoch in range(EPOCHS):
        found, truth = [], []
        for images, masks in loader:
            optimizer.zero_grad()
            scores = model(images.to(device))
            loss = criterion(scores, masks.to(device))
            loss.backward()
            optimizer.step()
            found.append(scores.argmax(dim=1).cpu())
            truth.append(masks)
        print(
            f"epoch {epoch + 1}: last loss {loss.item():.4f}, Dice"
            f" {dice(torch.cat(found), torch.cat(truth)):.4f}"
        )

    rows = []
    with torch.no_grad():
        for images, records in DataLoader(Records("test", with_masks=False), batch_size=BATCH_SIZE):
            masks = model(images.to(device)).argmax(dim=1).cpu().numpy()
            rows += [
                (record, rle_encode(mask)) for record, mask in zip(records, masks, strict=True)
            ]
    pd.DataFrame(rows, columns=["record_id", "encoded_pixels"]).to_csv(
        "submission.csv", index=False
    )
