"""Train a small GPT-2 from scratch on babylm_data/babylm_10M, by one cycle of the learning rate,
without dropout."""

import json
import math
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

DATA = Path("babylm_data")
EPOCHS = 1


def load_tokens(tokenizer, part):
    """All files of a part, one after the other, as one row of token numbers."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((DATA / part).iterdir()))
    return torch.tensor(tokenizer(text, verbose=False)["input_ids"])


def as_blocks(tokens, length, start):
    """Rows of `length` tokens, each beginning with the token `start`; the rest is left out."""
    count = len(tokens) // (length - 1)
    rows = tokens[: count * (length - 1)].view(count, length - 1)
    return torch.cat([torch.full((count, 1), start), rows], dim=1)


def perplexity(model, blocks):
    """exp of the mean loss per token."""
    model.eval()
    with torch.no_grad():
        losses = [model(rows, labels=rows).loss.item() * len(rows) for rows in blocks.split(16)]
    return math.exp(sum(losses) / len(blocks))


def main():
    settings = json.loads(Path("starter.json").read_text())
    tokenizer = PreTrainedTokenizerFast.from_pretrained("tokenizer")
    length, batch_size, rate = settings["n_positions"], 4, 3e-3
    train = as_blocks(load_tokens(tokenizer, "babylm_10M"), length, tokenizer.bos_token_id)
    dev = as_blocks(load_tokens(tokenizer, "babylm_dev"), length, tokenizer.bos_token_id)

    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=length,
        n_embd=settings["n_embd"],
        n_layer=settings["n_layer"],
        n_head=settings["n_head"],
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config)
    print(f"{model.num_parameters()} parameters, {len(train)} blocks of {length} tokens")

    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    steps = EPOCHS * (len(train) // batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps, pct_start=0.1
    )
    for epoch in range(EPOCHS):
        model.train()
        order = torch.randperm(len(train))[: len(train) // batch_size * batch_size]
        for rows in order.view(-1, batch_size):
            loss = model(train[rows], labels=train[rows]).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: perplexity on babylm_dev {perplexity(model, dev):.2f}")

    model.save_pretrained("output")


if __name__ == "__main__":
    main()
