"""Grades of essays without reading them: every essay gets the mean grades of the training
essays."""

import pandas as pd

GRADES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]

means = pd.read_csv("train.csv")[GRADES].mean()
submission = pd.read_csv("test.csv")[["text_id"]].assign(**means)
submission.to_csv("submission.csv", index=False)
