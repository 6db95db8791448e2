"""Hands out the test data month by month and collects the predictions, as the competition's own
server did.

env = make_env()
for test, test_peptides, test_proteins, sample_submission in env.iter_test():
    sample_submission["rating"] = ...
    env.predict(sample_submission)      # after the last one submission.csv is written
"""

from pathlib import Path

import pandas as pd

FOLDER = Path("example_test_files")
FILES = ("test.csv", "test_peptides.csv", "test_proteins.csv", "sample_submission.csv")
GROUP = "visit_month"


class MockApi:
    """The test files, one visit month after the other."""

    def __init__(self, folder=FOLDER, target="submission.csv"):
        self.tables = [pd.read_csv(Path(folder) / name) for name in FILES]
        self.target = Path(target)
        self.months = sorted(self.tables[-1][GROUP].unique())
        self.predictions = []

    def iter_test(self):
        """Yield (test, test_peptides, test_proteins, sample_submission) of each month; each needs a
        predict()."""
        for number, month in enumerate(self.months):
            if len(self.predictions) != number:
                raise RuntimeError("call predict() for this month before asking for the next one")
            yield tuple(
                table[table[GROUP] == month].reset_index(drop=True) for table in self.tables
            )

    def predict(self, predictions):
        """Take a table with the columns prediction_id and rating; the last month's call writes the
        submission."""
        self.predictions.append(predictions[["prediction_id", "rating"]].copy())
        if len(self.predictions) == len(self.months):
            pd.concat(self.predictions).to_csv(self.target, index=False)
            print(f"wrote {self.target}")


def make_env():
    """The one environment of a submission."""
    return MockApi()
