"""Grades of essays: ridge regression on words, pairs of words, pieces of words and a few counts."""

import re

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

GRADES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]
SEED = 42


class Counts(BaseEstimator, TransformerMixin):
    """What a bag of words does not say: lengths, punctuation, paragraphs, capitals, variety and
    rare words."""

    def fit(self, texts, y=None):
        known = {}
        for text in texts:
            for word in set(re.findall(r"[a-z]+", text.lower())):
                known[word] = known.get(word, 0) + 1
        self.known_ = {word for word, count in known.items() if count >= max(2, len(texts) // 50)}
        return self

    def transform(self, texts):
        return np.array([self.counts(text) for text in texts])

    def counts(self, text):
        words = re.findall(r"[A-Za-z]+", text) or ["x"]
        size = len(words)
        rare = sum(word.lower() not in self.known_ for word in words)
        marks = [text.count(mark) / size for mark in (".", ",", "\n\n", "!", "?", ";")]
        capitals = sum(letter.isupper() for letter in text) / size
        length = np.mean([len(word) for word in words])
        return [np.log(size), rare / size, capitals, length, len({*words}) / np.sqrt(size), *marks]


def mcrmse(true, predicted):
    """Mean over the columns of their root mean squared errors."""
    return np.sqrt(np.mean((true - predicted) ** 2, axis=0)).mean()


def train_model(texts, grades):
    """Case and punctuation are kept: they are part of what is graded."""
    words = TfidfVectorizer(
        ngram_range=(1, 2),
        token_pattern=r"[^\s.,]+|[.,]",
        lowercase=False,
        sublinear_tf=True,
        min_df=2,
    )
    pieces = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), lowercase=False, sublinear_tf=True, min_df=3
    )
    counts = make_pipeline(Counts(), StandardScaler())
    features = FeatureUnion(
        [("words", words), ("pieces", pieces), ("counts", counts)],
        transformer_weights={"counts": 0.3},
    )
    return make_pipeline(features, Ridge(1.5)).fit(texts, grades)


def predict(model, texts):
    return model.predict(texts).clip(1, 5)


if __name__ == "__main__":
    data = pd.read_csv("train.csv")
    test = pd.read_csv("test.csv")
    shuffled = data.sample(frac=1, random_state=SEED)
    valid, train = shuffled[: len(shuffled) // 10], shuffled[len(shuffled) // 10 :]

    tried = train_model(train["full_text"], train[GRADES].to_numpy())
    print(
        "MCRMSE on the validation essays:"
        f" {mcrmse(valid[GRADES].to_numpy(), predict(tried, valid['full_text'])):.4f}"
    )

    final = train_model(data["full_text"], data[GRADES].to_numpy())
    submission = pd.DataFrame(predict(final, test["full_text"]), columns=GRADES)
    submission.insert(0, "text_id", test["text_id"])
    submission.to_csv("submission.csv", index=False)
