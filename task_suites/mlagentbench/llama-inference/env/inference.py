"""Greedy generation with the model of the folder model/, and how long it takes."""

import time

import torch
from llama import from_folder

BATCHES, BATCH_SIZE, CONTEXT, NEW_TOKENS = 10, 2, 96, 4


def load_model(folder):
    """Whatever `generate` needs of the model in `folder`; its time does not count."""
    return from_folder(folder)


def generate(model, tokens, new_tokens):
    """Tokens (batch, length) -> the same with `new_tokens` more, each the one with the highest
    score."""
    with torch.no_grad():
        for _ in range(new_tokens):
            scores = model.logits(tokens)[:, -1]
            tokens = torch.cat([tokens, scores.argmax(dim=-1, keepdim=True)], dim=1)
    return tokens


if __name__ == "__main__":
    torch.manual_seed(0)
    model = load_model("model")
    vocabulary = model.config["vocab_size"]
    times = []
    for _ in range(BATCHES):
        prompt = torch.randint(0, vocabulary, (BATCH_SIZE, CONTEXT))
        start = time.perf_counter()
        generate(model, prompt, NEW_TOKENS)
        times.append(time.perf_counter() - start)
    print(f"{sum(times) / len(times):.4f} s for {BATCH_SIZE} x {NEW_TOKENS} tokens after {CONTEXT}")
