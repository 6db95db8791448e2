"""Train the network to imitate the algorithm on small graphs; save the best weights to
checkpoints/."""

import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from nets import build_model
from samplers import TRAINING_DENSITIES, floyd_warshall, random_graphs


def sample(rng, count, size, densities=TRAINING_DENSITIES):
    """Graphs with their pointers and the algorithm's steps, as tensors."""
    weights = random_graphs(rng, count, size, densities)
    pointers, (step_pointers, step_lengths, step_known) = floyd_warshall(weights)
    return (
        torch.tensor(weights, dtype=torch.float32),
        torch.tensor(np.concatenate([step_pointers[1:], pointers[None]])),
        torch.tensor(step_lengths[1:], dtype=torch.float32),
        torch.tensor(step_known[1:], dtype=torch.float32),
    )


def loss_of(decoded, pointers, lengths, known):
    """Cross entropy of the last pointers, and the mean over steps of the losses of the states on
    the way."""
    size = len(decoded)
    loss = F.cross_entropy(decoded[-1][0].flatten(0, 2), pointers[-1].flatten())
    for step in range(size - 1):
        scores, guessed_lengths, guessed_known = decoded[step]
        loss = loss + F.cross_entropy(scores.flatten(0, 2), pointers[step].flatten()) / size
        loss = loss + F.mse_loss(guessed_lengths, lengths[step]) / size
        loss = loss + F.binary_cross_entropy_with_logits(guessed_known, known[step]) / size
    return loss


def accuracy(model, weights, pointers):
    """Share of right pointers."""
    model.eval()
    with torch.no_grad():
        right = model(weights).argmax(dim=-1) == pointers[-1]
    return right.float().mean().item()


def main():
    settings = json.loads(Path("starter.json").read_text())
    rng = np.random.default_rng()
    model = build_model(settings)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"])
    validation = sample(rng, 32, max(settings["sizes"]))
    folder = Path("checkpoints")
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"hidden": settings["hidden"]}))

    best = -1.0
    for step in range(1, settings["steps"] + 1):
        model.train()
        weights, *truth = sample(
            rng, settings["batch_size"], settings["sizes"][step % len(settings["sizes"])]
        )
        loss = loss_of(model.unroll(weights), *truth)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % settings["validate_every"] == 0:
            found = accuracy(model, validation[0], validation[1])
            print(
                f"step {step}: loss {loss.item():.3f}, accuracy on graphs of the largest training"
                f" size {found:.3f}"
            )
            if found > best:
                best = found
                torch.save(model.state_dict(), folder / "best.pt")


if __name__ == "__main__":
    main()
