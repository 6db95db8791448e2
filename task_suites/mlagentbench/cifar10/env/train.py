"""Train a small convolutional network on images in CIFAR-10's layout and write submission.csv."""

import pickle
from pathlib import Path

import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

DATA = Path("data/cifar-10-batches-py")
BATCH_SIZE = 128
EPOCHS = 5

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load_batch(name):
    """Images as floats from -1 to 1 in shape (n, 3, 32, 32), and their labels."""
    with open(DATA / name, "rb") as file:
        batch = pickle.load(file, encoding="bytes")
    images = torch.from_numpy(batch[b"data"]).float().reshape(-1, 3, 32, 32) / 255
    return (images - 0.5) / 0.5, torch.tensor(batch[b"labels"])


def load_training_data():
    """All five training batches as one."""
    batches = [load_batch(f"data_batch_{number}") for number in range(1, 6)]
    return torch.cat([images for images, _ in batches]), torch.cat(
        [labels for _, labels in batches]
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def predict(model, images):
    """Probabilities of the ten classes for every image, in order."""
    model.eval()
    with torch.no_grad():
        batches = [model(batch.to(device)).softmax(dim=1).cpu() for batch in images.split(1000)]
    return torch.cat(batches)


if __name__ == "__main__":
    train_images, train_labels = load_training_data()
    test_images, _ = load_batch("test_batch")
    train_loader = DataLoader(
        TensorDataset(train_images, train_labels),
        batch_size=BATCH_SIZE,
        shuffle=True,
        drop_last=True,
    )

    model = Net().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(EPOCHS):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        accuracy = (
            (predict(model, train_images).argmax(dim=1) == train_labels).float().mean().item()
        )
        print(
            f"epoch {epoch + 1}: last loss {loss.item():.4f}, training accuracy {accuracy:.4f}",
            flush=True,
        )

    pd.DataFrame(predict(model, test_images).numpy()).to_csv("submission.csv")
