"""Masks as run-length encoded text, and back."""

import numpy as np


def rle_encode(mask):
    """The pixels of a mask (rows, columns) that are not 0, as "start length start length ...".

    Pixels are numbered from 1, from top to bottom and then from left to right; an empty mask is
    "-"."""
    flat = np.concatenate([[0], np.asarray(mask).T.ravel() != 0, [0]]).astype(int)
    edges = np.flatnonzero(np.diff(flat)) + 1
    starts, ends = edges[::2], edges[1::2]
    return (
        " ".join(f"{start} {end - start}" for start, end in zip(starts, ends, strict=True)) or "-"
    )


def rle_decode(text, shape):
    """The mask of 0 and 1 in the given shape (rows, columns)."""
    flat = np.zeros(shape[0] * shape[1], dtype=np.uint8)
    numbers = [] if text == "-" else [int(number) for number in text.split()]
    for start, length in zip(numbers[::2], numbers[1::2], strict=True):
        flat[start - 1 : start - 1 + length] = 1
    return flat.reshape(shape[1], shape[0]).T
