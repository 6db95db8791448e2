"""Film reviews: load the data, train a classifier, write submission.csv. The block in the middle is
to be filled in."""

import pandas as pd
from sklearn.model_selection import train_test_split

data = pd.read_csv("imdb/train.csv")
test = pd.read_csv("imdb/test.csv")
train, valid = train_test_split(data, test_size=0.1, random_state=1)

# --------------------------------------------------------------------------------------------------
# Fill in: train a classifier on train["text"] and train["label"] and define `predict(texts)`: an
# array with a row for each text and a column of probabilities for each of the labels 0 and 1.


# --------------------------------------------------------------------------------------------------

for name, part in (("training", train), ("validation", valid)):
    accuracy = (predict(part["text"]).argmax(axis=1) == part["label"]).mean()
    print(f"accuracy on the {name} reviews: {accuracy:.4f}")

submission = pd.DataFrame(predict(test["text"]), columns=["0", "1"])
submission.insert(0, "idx", test["idx"])
submission.to_csv("submission.csv", index=False)
