"""Predict UPDRS ratings from the proteins of a visit, and write submission.csv through the API.

Against the starter: the logarithms of the proteins' abundances as features, one model a part for
all waits, every known rating as a training row, and the absolute error of log(1 + rating) as loss,
which is close to the metric."""

import numpy as np
import pandas as pd
import public_timeseries_testing_util
from sklearn.ensemble import HistGradientBoostingRegressor

TARGETS = ["updrs_1", "updrs_2", "updrs_3", "updrs_4"]
WAITS = [0, 6, 12, 24]


def abundances(proteins):
    """One row a visit, one column a protein."""
    return np.log(proteins.pivot_table(index="visit_id", columns="UniProt", values="NPX"))


def training_rows(clinical, target):
    """(visit_id, month, wait, rating) for every rating known at a visit or later."""
    known = (
        clinical.dropna(subset=[target]).set_index(["patient_id", "visit_month"])[target].to_dict()
    )
    rows = [
        (f"{patient}_{month}", month, wait, known[patient, month + wait])
        for patient, month in zip(clinical["patient_id"], clinical["visit_month"], strict=True)
        for wait in WAITS
        if (patient, month + wait) in known
    ]
    return pd.DataFrame(rows, columns=["visit_id", "month", "wait", "rating"])


def features(visits, months, waits, samples, columns):
    """Proteins (missing where there is no sample), month of the visit and wait."""
    table = samples.reindex(index=visits, columns=columns).to_numpy()
    return np.column_stack([table, months, waits])


if __name__ == "__main__":
    clinical = pd.read_csv("train_clinical_data.csv")
    samples = abundances(pd.read_csv("train_proteins.csv"))
    columns = samples.columns

    models = {}
    for target in TARGETS:
        rows = training_rows(clinical, target)
        rows = rows[rows["visit_id"].isin(samples.index)]
        X = features(rows["visit_id"], rows["month"], rows["wait"], samples, columns)
        model = HistGradientBoostingRegressor(
            loss="absolute_error",
            max_iter=150,
            learning_rate=0.06,
            max_leaf_nodes=8,
            random_state=0,
        )
        models[target] = model.fit(X, np.log1p(rows["rating"]))

    env = public_timeseries_testing_util.make_env()
    for _test, _test_peptides, test_proteins, sample_submission in env.iter_test():
        samples = abundances(test_proteins) if len(test_proteins) else pd.DataFrame(columns=columns)
        sample_submission["rating"] = 0.0
        parts = sample_submission["prediction_id"].str.extract(
            r"(\d+_\d+)_(updrs_\d)_plus_(\d+)_months"
        )
        for target, model in models.items():
            mask = parts[1] == target
            X = features(
                parts.loc[mask, 0],
                sample_submission.loc[mask, "visit_month"],
                parts.loc[mask, 2],
                samples,
                columns,
            )
            sample_submission.loc[mask, "rating"] = np.expm1(model.predict(X.astype(float))).clip(0)
        env.predict(sample_submission)
