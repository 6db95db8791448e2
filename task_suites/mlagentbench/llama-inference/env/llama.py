"""A Llama-like language model in plain PyTorch, with weights from a folder in the layout of Hugging
Face."""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file


class Llama:
    """Rotary positions, grouped keys and values, gated feed-forward layers; everything in 32-bit
    numbers."""

    def __init__(self, config, weights):
        self.config = config
        self.weights = weights
        self.heads = config["num_attention_heads"]
        self.groups = config["num_key_value_heads"]
        self.size = config["hidden_size"] // self.heads

    def logits(self, tokens):
        """Tokens (batch, length) -> scores (batch, length, vocabulary) of the token that follows
        each of them."""
        x = self.weights["model.embed_tokens.weight"][tokens]
        length = tokens.shape[1]
        cos, sin = self.rotations(length)
        mask = torch.full((length, length), float("-inf")).triu(1)
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            x = x + self.attention(
                name + "self_attn.", self.norm(name + "input_layernorm", x), cos, sin, mask
            )
            x = x + self.feed_forward(
                name + "mlp.", self.norm(name + "post_attention_layernorm", x)
            )
        head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        return self.norm("model.norm", x) @ head.T

    def norm(self, name, x):
        """Root mean square norm."""
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.config["rms_norm_eps"])
        return x * scale * self.weights[name + ".weight"]

    def linear(self, name, x):
        return x @ self.weights[name + ".weight"].T

    def rotations(self, length):
        """Cosines and sines (length, size of a head) of the angles by which positions are
        turned."""
        steps = torch.arange(0, self.size, 2) / self.size
        angles = torch.arange(length)[:, None] / self.config["rope_theta"] ** steps
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()

    def attention(self, name, x, cos, sin, mask):
        """Causal attention; several heads share one group of keys and values."""
        batch, length, _ = x.shape
        q = (
            self.linear(name + "q_proj", x)
            .view(batch, length, self.heads, self.size)
            .transpose(1, 2)
        )
        k = (
            self.linear(name + "k_proj", x)
            .view(batch, length, self.groups, self.size)
            .transpose(1, 2)
        )
        v = (
            self.linear(name + "v_proj", x)
            .view(batch, length, self.groups, self.size)
            .transpose(1, 2)
        )
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k = k.repeat_interleave(self.heads // self.groups, dim=1)
        v = v.repeat_interleave(self.heads // self.groups, dim=1)
        scores = (q @ k.transpose(2, 3) / self.size**0.5 + mask).softmax(dim=-1)
        return self.linear(name + "o_proj", (scores @ v).transpose(1, 2).reshape(batch, length, -1))

    def feed_forward(self, name, x):
        gate = F.silu(self.linear(name + "gate_proj", x))
        return self.linear(name + "down_proj", gate * self.linear(name + "up_proj", x))


def turned(x, cos, sin):
    """Rotary positions: each pair of halves turned by its angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def from_folder(folder):
    """The model of `folder`/config.json and `folder`/model.safetensors."""
    config = json.loads((Path(folder) / "config.json").read_text())
    weights = {
        name: tensor.float()
        for name, tensor in load_file(Path(folder) / "model.safetensors").items()
    }
    return Llama(config, weights)
