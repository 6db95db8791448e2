"""Predict UPDRS ratings from the month of the visit alone, and write submission.csv through the
API."""

import numpy as np
import pandas as pd
import public_timeseries_testing_util
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GroupKFold

TARGETS = ["updrs_1", "updrs_2", "updrs_3", "updrs_4"]
WAITS = [0, 6, 12, 24]


def smapep1(truth, predicted):
    """SMAPE after adding 1 to both."""
    truth, predicted = np.asarray(truth) + 1.0, np.asarray(predicted) + 1.0
    return 100 * np.mean(np.abs(predicted - truth) / ((np.abs(predicted) + np.abs(truth)) / 2))


def training_rows(clinical, target):
    """Visits whose rating is known now and at all later times: patients, months, ratings at the
    four times."""
    known = (
        clinical.dropna(subset=[target]).set_index(["patient_id", "visit_month"])[target].to_dict()
    )
    patients, months, ratings = [], [], []
    for patient, month in known:
        row = [known.get((patient, month + wait)) for wait in WAITS]
        if None not in row:
            patients.append(patient)
            months.append([month])
            ratings.append(row)
    return np.array(patients), np.array(months), np.array(ratings)


def fit(months, ratings):
    return RandomForestRegressor().fit(months, ratings)


if __name__ == "__main__":
    clinical = pd.read_csv("train_clinical_data.csv")
    proteins = pd.read_csv("train_proteins.csv")
    peptides = pd.read_csv("train_peptides.csv")
    print(
        f"{clinical['patient_id'].nunique()} patients, {len(clinical)} visits, {len(proteins)}"
        " protein measurements"
    )

    models = {}
    for target in TARGETS:
        patients, months, ratings = training_rows(clinical, target)
        scores = []
        for train, valid in GroupKFold(n_splits=8).split(months, ratings, groups=patients):
            predicted = fit(months[train], ratings[train]).predict(months[valid])
            scores.append(smapep1(ratings[valid].ravel(), predicted.round().ravel()))
        print(f"{target}: SMAPE+1 in 8-fold cross-validation {np.mean(scores):.2f}")
        models[target] = fit(months, ratings)

    env = public_timeseries_testing_util.make_env()
    for test, _test_peptides, _test_proteins, sample_submission in env.iter_test():
        month = test["visit_month"].iloc[0]
        predicted = {
            target: dict(zip(WAITS, models[target].predict([[month]])[0], strict=True))
            for target in TARGETS
        }
        parts = sample_submission["prediction_id"].str.extract(r"(updrs_\d)_plus_(\d+)_months")
        ratings = [predicted[target][int(wait)] for target, wait in parts.itertuples(index=False)]
        sample_submission["rating"] = np.round(ratings)
        env.predict(sample_submission)
