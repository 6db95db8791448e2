"""The forward pass of a two-dimensional convolution layer, and how long it takes."""

import time

import numpy as np


def relu(values):
    """Negative values become 0."""
    return np.maximum(values, 0)


def add_padding(features, padding):
    """Surround every image with `padding` pixels of zeros; features: (images, height, width,
    channels)."""
    return np.pad(features, ((0, 0), (padding, padding), (padding, padding), (0, 0)))


def convolution_step(patch, kernel, bias):
    """One number: the sum of a patch times a kernel, plus a bias; patch and kernel have the same
    shape."""
    return (np.sum(patch * kernel) + bias).item()


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
        padded = add_padding(features, self.padding)
        output = np.zeros((num_images, new_height, new_width, num_filters))

        for image in range(num_images):
            for row in range(new_height):
                for column in range(new_width):
                    for filter_index in range(num_filters):
                        top = row * self.stride
                        left = column * self.stride
                        patch = padded[image, top : top + kernel_size, left : left + kernel_size, :]
                        kernel = self.kernel_matrices[:, :, :, filter_index]
                        bias = self.biases[:, :, :, filter_index]
                        output[image, row, column, filter_index] = convolution_step(
                            patch, kernel, bias
                        )

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
