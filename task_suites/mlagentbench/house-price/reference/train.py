"""House prices: gradient boosting on all columns, fitted to the logarithm of the price."""

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split

QUALITY = {"Po": 1, "Fa": 2, "TA": 3, "Gd": 4, "Ex": 5}


def features(table):
    """Numbers for all columns: grades in their order, other words by rank of price, and a few
    sums."""
    table = table.copy()
    for column in table.columns:
        if pd.api.types.is_numeric_dtype(table[column]):
            continue
        if set(table[column].dropna().unique()) <= set(QUALITY):
            table[column] = table[column].map(QUALITY).fillna(0)
        else:
            table[column] = table[column].map(ranks[column])
    table["TotalSF"] = table["TotalBsmtSF"].fillna(0) + table["1stFlrSF"] + table["2ndFlrSF"]
    table["Baths"] = table["FullBath"] + 0.5 * table["HalfBath"] + table["BsmtFullBath"].fillna(0)
    table["Age"] = table["YrSold"] - table["YearBuilt"]
    table["SinceRemodel"] = table["YrSold"] - table["YearRemodAdd"]
    return table.astype(float).fillna(-1)


train_data = pd.read_csv("train.csv", index_col="Id")
test_data = pd.read_csv("test.csv", index_col="Id")
price = train_data.pop("SalePrice")

# A category's place in the order of its median price, learnt from the training rows only.
ranks = {
    column: np.log(price).groupby(train_data[column]).median().rank().to_dict()
    for column in train_data.columns
    if not pd.api.types.is_numeric_dtype(train_data[column])
}


def fit(table, target):
    """Huber loss: a handful of odd sales do not bend the model."""
    model = GradientBoostingRegressor(
        loss="huber",
        n_estimators=500,
        learning_rate=0.05,
        max_depth=4,
        subsample=0.7,
        max_features=0.2,
        min_samples_leaf=3,
        random_state=0,
    )
    return model.fit(table, np.log(target))


train_X, valid_X, train_y, valid_y = train_test_split(features(train_data), price, random_state=1)
tried = fit(train_X, train_y)
print(
    "validation: mean absolute error"
    f" {mean_absolute_error(valid_y, np.exp(tried.predict(valid_X))):,.0f}"
)

final = fit(features(train_data), price)
predictions = np.exp(final.predict(features(test_data)))
pd.DataFrame({"Id": test_data.index, "SalePrice": predictions}).to_csv(
    "submission.csv", index=False
)
