"""For each part of the UPDRS the one rating that is best on the training visits, for everybody and
at all times."""

import numpy as np
import pandas as pd

TARGETS = ["updrs_1", "updrs_2", "updrs_3", "updrs_4"]


def best_constant(ratings):
    """The known rating with the smallest SMAPE+1."""
    errors = {c: np.mean(np.abs(ratings - c) / (ratings + c + 2)) for c in np.unique(ratings)}
    return min(errors, key=errors.get)


clinical = pd.read_csv("train_clinical_data.csv")
constants = {target: best_constant(clinical[target].dropna().to_numpy()) for target in TARGETS}
submission = pd.read_csv("example_test_files/sample_submission.csv")
submission["rating"] = submission["prediction_id"].str.extract(r"(updrs_\d)")[0].map(constants)
submission[["prediction_id", "rating"]].to_csv("submission.csv", index=False)
