"""For every image the most frequent categories of the training images; no guess at what is out of
sample."""

import json

import pandas as pd

counts = (
    pd.read_csv("multilabel_classification/train.csv")["categories"]
    .map(json.loads)
    .explode()
    .value_counts()
)
submission = pd.read_csv("sample_submission.csv")
submission["categories"] = " ".join(str(int(category)) for category in counts.index[:20])
submission["osd"] = 0.5
submission.to_csv("submission.csv", index=False)
