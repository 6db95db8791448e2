"""Spaceship Titanic: load the data, fit a model, write submission.csv."""

import pandas as pd
from sklearn.linear_model import LogisticRegression

CATEGORIES = ["HomePlanet", "CryoSleep", "Destination", "VIP", "Deck", "Side"]


def indicators(table):
    """One column for each value of each category."""
    table = table.copy()
    table[["Deck", "Num", "Side"]] = table["Cabin"].str.split("/", expand=True)
    return pd.get_dummies(table[CATEGORIES])


train_data = pd.read_csv("train.csv")
test_data = pd.read_csv("test.csv")

X = indicators(train_data)
y = train_data["Transported"]
# A deck that occurs in one file only has a column in one table only: the training columns decide.
test_X = indicators(test_data).reindex(columns=X.columns, fill_value=False)

cut = int(len(X) * 0.8)
train_X, train_y = X[:cut], y[:cut]
val_X, val_y = X[cut:], y[cut:]

# --------------------------------------------------------------------------------------------------
model = LogisticRegression(max_iter=500)
model.fit(train_X, train_y)
train_accuracy = model.score(train_X, train_y)
val_accuracy = model.score(val_X, val_y)

# --------------------------------------------------------------------------------------------------

print(f"accuracy: train {train_accuracy:.4f}, validation {val_accuracy:.4f}")

predictions = model.predict(test_X)
submission = pd.DataFrame({"PassengerId": test_data["PassengerId"], "Transported": predictions})
submission.to_csv("submission.csv", index=False)
