"""Grades of essays: load the data, fit a model, write submission.csv. The model is still to be
made."""

import numpy as np
import pandas as pd

GRADES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]
SEED = 42


def mcrmse(true, predicted):
    """Mean over the columns of their root mean squared errors."""
    return np.sqrt(np.mean((true - predicted) ** 2, axis=0)).mean()


def train_model(train_texts, train_grades, valid_texts, valid_grades):
    """A model of the grades: still to be made."""


def predict(model, texts):
    """Grades of every text: an array with a row for each text and a column for each of GRADES."""
    return np.random.rand(len(texts), len(GRADES))  # to be replaced


if __name__ == "__main__":
    np.random.seed(SEED)
    data = pd.read_csv("train.csv")
    test = pd.read_csv("test.csv")

    shuffled = data.sample(frac=1, random_state=SEED)
    valid = shuffled[: len(shuffled) // 10]
    train = shuffled[len(shuffled) // 10 :]
    print(f"{len(train)} essays to train on, {len(valid)} for validation, {len(test)} to predict")

    model = train_model(
        train["full_text"].tolist(),
        train[GRADES].to_numpy(),
        valid["full_text"].tolist(),
        valid[GRADES].to_numpy(),
    )
    print(
        "MCRMSE on the training essays:"
        f" {mcrmse(train[GRADES].to_numpy(), predict(model, train['full_text'])):.4f}"
    )
    print(
        "MCRMSE on the validation essays:"
        f" {mcrmse(valid[GRADES].to_numpy(), predict(model, valid['full_text'])):.4f}"
    )

    submission = pd.DataFrame(predict(model, test["full_text"].tolist()), columns=GRADES)
    submission.insert(0, "text_id", test["text_id"])
    submission.to_csv("submission.csv", index=False)
