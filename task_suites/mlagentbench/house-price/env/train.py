"""House prices: load the data, fit a model, write submission.csv. The block in the middle is yours
to fill in."""

import pandas as pd
from sklearn.model_selection import train_test_split

FEATURES = [
    "MSSubClass",
    "LotArea",
    "OverallQual",
    "OverallCond",
    "YearBuilt",
    "YearRemodAdd",
    "1stFlrSF",
    "2ndFlrSF",
    "LowQualFinSF",
    "GrLivArea",
    "FullBath",
    "HalfBath",
    "BedroomAbvGr",
    "KitchenAbvGr",
    "TotRmsAbvGrd",
    "Fireplaces",
    "WoodDeckSF",
    "OpenPorchSF",
    "EnclosedPorch",
    "3SsnPorch",
    "ScreenPorch",
    "PoolArea",
    "MiscVal",
    "MoSold",
    "YrSold",
]

train_data = pd.read_csv("train.csv", index_col="Id")
test_data = pd.read_csv("test.csv", index_col="Id")

X = train_data[FEATURES]
y = train_data["SalePrice"]
test_X = test_data[FEATURES]

train_X, valid_X, train_y, valid_y = train_test_split(X, y, random_state=1)

# --------------------------------------------------------------------------------------------------
# Fill in: fit a model on train_X and train_y; set `model`, `train_mae` and `valid_mae`.


# --------------------------------------------------------------------------------------------------

print(f"mean absolute error: train {train_mae:,.0f}, validation {valid_mae:,.0f}")

predictions = model.predict(test_X)
pd.DataFrame({"Id": test_data.index, "SalePrice": predictions}).to_csv(
    "submission.csv", index=False
)
