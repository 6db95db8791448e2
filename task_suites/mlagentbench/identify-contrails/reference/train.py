"""Train a small U-Net on false-colour images of contrails and write submission.csv.

Against the starter: a network that sees a pixel's neighbourhood, a reasonable learning rate,
several epochs, images that are read once, and mirrored copies."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from encode import rle_encode

LABELLED_FRAME = 4
BATCH_SIZE = 8
EPOCHS = 8
LEARNING_RATE = 5e-3

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


def block(inputs, outputs):
    layers = []
    for _ in range(2):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Three resolutions."""

    def __init__(self, width=8):
        super().__init__()
        self.down1, self.down2, self.bottom = (
            block(3, width),
            block(width, 2 * width),
            block(2 * width, 4 * width),
        )
        self.up2, self.up1 = block(6 * width, 2 * width), block(3 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        fine = self.down1(x)
        middle = self.down2(F.max_pool2d(fine, 2))
        coarse = self.bottom(F.max_pool2d(middle, 2))
        middle = self.up2(torch.cat([F.interpolate(coarse, scale_factor=2), middle], dim=1))
        return self.head(self.up1(torch.cat([F.interpolate(middle, scale_factor=2), fine], dim=1)))


def mirrored(images, masks):
    """Both, turned around the vertical axis, the horizontal axis, or not, at random."""
    for axis in (-1, -2):
        if torch.rand(()) < 0.5:
            images, masks = images.flip(axis), masks.flip(axis)
    return images, masks


if __name__ == "__main__":
    torch.manual_seed(0)
    folders = sorted(Path("train").iterdir())
    images = torch.from_numpy(np.stack([false_colour(folder) for folder in folders]))
    masks = np.stack([np.load(folder / "human_pixel_masks.npy")[..., 0] for folder in folders])
    masks = torch.from_numpy(masks.astype(np.int64))

    model = UNet().to(device)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0], device=device))
    optimizer = torch.optim.Adam(model.parameters())
    steps = EPOCHS * -(-len(images) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LEARNING_RATE, total_steps=steps
    )
    for epoch in range(EPOCHS):
        for part in torch.randperm(len(images)).split(BATCH_SIZE):
            inputs, targets = mirrored(images[part], masks[part])
            optimizer.zero_grad()
            loss = criterion(model(inputs.to(device)), targets.to(device))
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: last loss {loss.item():.4f}", flush=True)

    model.eval()
    rows = []
    with torch.no_grad():
        for folder in sorted(Path("test").iterdir()):
            scores = model(torch.from_numpy(false_colour(folder))[None].to(device))
            rows.append((folder.name, rle_encode(scores.argmax(dim=1)[0].cpu().numpy())))
    pd.DataFrame(rows, columns=["record_id", "encoded_pixels"]).to_csv(
        "submission.csv", index=False
    )
