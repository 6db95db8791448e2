"""Greedy generation that computes every token's keys and values once, and scores of the last token
only."""

import time

import torch
import torch.nn.functional as F
from llama import from_folder, turned

BATCHES, BATCH_SIZE, CONTEXT, NEW_TOKENS = 10, 2, 96, 4


class Cached:
    """The model of llama.py with one matrix for q, k, v and one for gate and up, and room for keys
    and values."""

    def __init__(self, model):
        self.model, self.config, weights = model, model.config, model.weights
        self.embedding = weights["model.embed_tokens.weight"]
        self.head = weights.get("lm_head.weight", self.embedding)
        self.layers = []
        for number in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{number}."
            qkv = torch.cat([weights[f"{name}self_attn.{part}_proj.weight"] for part in "qkv"])
            gate_up = torch.cat(
                [weights[f"{name}mlp.{part}_proj.weight"] for part in ("gate", "up")]
            )
            out, down = (
                weights[name + "self_attn.o_proj.weight"],
                weights[name + "mlp.down_proj.weight"],
            )
            norms = (
                weights[name + "input_layernorm.weight"],
                weights[name + "post_attention_layernorm.weight"],
            )
            self.layers.append((qkv, out, gate_up, down, *norms))
        self.last_norm = weights["model.norm.weight"]

    def norm(self, x, weight):
        return (
            x
            * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.config["rms_norm_eps"])
            * weight
        )

    def best(self, tokens, start, caches, cos, sin):
        """The best next token after `tokens`, which stand at position `start` and later; fills the
        caches."""
        heads, groups, size = self.model.heads, self.model.groups, self.model.size
        batch, length = tokens.shape
        x = self.embedding[tokens]
        for (qkv, out, gate_up, down, norm_1, norm_2), (keys, values) in zip(
            self.layers, caches, strict=True
        ):
            mixed = (
                F.linear(self.norm(x, norm_1), qkv)
                .view(batch, length, heads + 2 * groups, size)
                .transpose(1, 2)
            )
            q, k, v = mixed.split([heads, groups, groups], dim=1)
            end = start + length
            keys[:, :, start:end] = turned(k, cos[start:end], sin[start:end])
            values[:, :, start:end] = v
            q = turned(q, cos[start:end], sin[start:end]).reshape(batch, groups, -1, size)
            k, v = keys[:, :, :end], values[:, :, :end]
            if length == 1:
                seen = F.scaled_dot_product_attention(q, k, v)
            else:
                share = heads // groups
                k, v = (t.repeat_interleave(share, dim=1) for t in (k, v))
                seen = F.scaled_dot_product_attention(
                    q.view(batch, heads, length, size), k, v, is_causal=True
                )
            seen = (
                seen.reshape(batch, heads, length, size).transpose(1, 2).reshape(batch, length, -1)
            )
            x = x + F.linear(seen, out)
            gate, up = F.linear(self.norm(x, norm_2), gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, down)
        return F.linear(self.norm(x[:, -1], self.last_norm), self.head).argmax(dim=-1, keepdim=True)


def load_model(folder):
    """Whatever `generate` needs of the model in `folder`; its time does not count."""
    return Cached(from_folder(folder))


def generate(model, tokens, new_tokens):
    """Tokens (batch, length) -> the same with `new_tokens` more, each the one with the highest
    score."""
    batch, length = tokens.shape
    with torch.inference_mode():
        shape = (batch, model.model.groups, length + new_tokens, model.model.size)
        caches = [(torch.empty(shape), torch.empty(shape)) for _ in model.layers]
        cos, sin = model.model.rotations(length + new_tokens)
        found = [model.best(tokens, 0, caches, cos, sin)]
        for step in range(new_tokens - 1):
            found.append(model.best(found[-1], length + step, caches, cos, sin))
    return torch.cat([tokens, *found], dim=1)


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
