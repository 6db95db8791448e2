"""The forward pass of a two-dimensional convolution layer, and how long it takes."""

import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def relu(values):
    """Negative values become 0."""
    return np.maximum(values, 0)


def add_padding(features, padding):
    """Surround every image with `padding` pixels of zeros; features: (images, height, width,
    channels)."""
    return np.pad(features, ((0, 0), (padding, padding), (padding, padding), (0, 0)))


class Conv2DLayer:
    """A convolution layer with square kernels, the same stride and padding in both directions, and
    biases."""

    def __init__(self, num_channels, num_filters, kernel_size, stride, padding, activation):
        self.stride = stride
        self.padding = padding
        self.activation = activation
        self.kernel_matrices = np.random.randn(kernel_size, kernel_size, num_channels, num_filters)
        self.biases = np.random.randn(1, 1, 1, num_filters)

    def forward(self, features):
        """(images, height, width, channels) -> (images, new height, new width, filters)."""
        num_images, height, width, _ = features.shape
        kernel_size, _, _, num_filters = self.kernel_matrices.shape
        new_height = (height + 2 * self.padding - kernel_size) // self.stride + 1
        new_width = (width + 2 * self.padding - kernel_size) // self.stride + 1
        # (images, new height, new width, channels, kernel rows, kernel columns): a view, nothing is
        # copied yet.
        windows = sliding_window_view(
            add_padding(features, self.padding), (kernel_size, kernel_size), axis=(1, 2)
        )
        patches = windows[:, :: self.stride, :: self.stride].transpose(0, 1, 2, 4, 5, 3)
        # One row a patch, one column a filter, so that the sums over a patch are one matrix
        # product.
        products = patches.reshape(
            -1, self.kernel_matrices[..., 0].size
        ) @ self.kernel_matrices.reshape(-1, num_filters)
        output = products.reshape(num_images, new_height, new_width, num_filters) + self.biases

        if self.activation == "relu":
            return relu(output)
        return output


if __name__ == "__main__":
    np.random.seed(0)
    images = np.random.randn(32, 64, 64, 3)
    layer = Conv2DLayer(3, 8, 3, stride=2, padding=2, activation="relu")
    start = time.perf_counter()
    result = layer.forward(images)
    print(
        f"forward pass: {time.perf_counter() - start:.3f} s, output {result.shape}, sum"
        f" {result.sum():.6f}"
    )
