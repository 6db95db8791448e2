"""Film reviews: logistic regression on words and on what stands beside them, so that "not dull" is
not "dull"."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

data = pd.read_csv("imdb/train.csv")
test = pd.read_csv("imdb/test.csv")
train, valid = train_test_split(data, test_size=0.1, random_state=1)


def fit(table):
    """Sequences of up to three words or marks, the strength of the regularisation by
    cross-validation."""
    words = TfidfVectorizer(
        ngram_range=(1, 3),
        token_pattern=r"(?u)\b\w+\b|[.,;!?]",
        sublinear_tf=True,
        min_df=2,
        max_features=200_000,
    )
    model = make_pipeline(words, LogisticRegressionCV(Cs=[1, 10, 100], cv=3, max_iter=1000))
    return model.fit(table["text"], table["label"])


accuracy = fit(train).score(valid["text"], valid["label"])
print(f"accuracy on the validation reviews: {accuracy:.4f}")

submission = pd.DataFrame(fit(data).predict_proba(test["text"]), columns=["0", "1"])
submission.insert(0, "idx", test["idx"])
submission.to_csv("submission.csv", index=False)
