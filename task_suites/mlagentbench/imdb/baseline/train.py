"""Film reviews: load the data, train a classifier, write submission.csv."""

import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

data = pd.read_csv("imdb/train.csv")
test = pd.read_csv("imdb/test.csv")
train, valid = train_test_split(data, test_size=0.1, random_state=1)

# --------------------------------------------------------------------------------------------------
model = make_pipeline(CountVectorizer(max_features=300), MultinomialNB())
model.fit(train["text"], train["label"])
predict = model.predict_proba

# --------------------------------------------------------------------------------------------------

for name, part in (("training", train), ("validation", valid)):
    accuracy = (predict(part["text"]).argmax(axis=1) == part["label"]).mean()
    print(f"accuracy on the {name} reviews: {accuracy:.4f}")

submission = pd.DataFrame(predict(test["text"]), columns=["0", "1"])
submission.insert(0, "idx", test["idx"])
submission.to_csv("submission.csv", index=False)
