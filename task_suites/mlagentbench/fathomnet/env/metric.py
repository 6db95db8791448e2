"""The task's metric, for your own validation."""

import numpy as np

RANKED = 20


def average_precision(truth, predicted):
    """AP@20 of one image: its categories, and the predicted ones with the most likely first."""
    total, hits = 0.0, set()
    for place, category in enumerate(predicted[:RANKED], 1):
        if category in truth and category not in hits:
            hits.add(category)
            total += len(hits) / place
    return total / min(len(set(truth)), RANKED)


def auc(truth, scores):
    """Area under the ROC curve; truth is 1 for out of sample and 0 for others. Ties count half."""
    truth, scores = np.asarray(truth, dtype=bool), np.asarray(scores, dtype=float)
    outside, inside = scores[truth][:, None], scores[~truth][None]
    return float(np.mean((outside > inside) + 0.5 * (outside == inside)))


def score(true_categories, predicted_categories, true_osd, predicted_osd):
    """(2 AUC - 1) / 2 + MAP@20 / 2"""
    pairs = zip(true_categories, predicted_categories, strict=True)
    precision = np.mean([average_precision(truth, predicted) for truth, predicted in pairs])
    return (2 * auc(true_osd, predicted_osd) - 1) / 2 + float(precision) / 2
