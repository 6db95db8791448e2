"""House prices: load the data, fit a model, write submission.csv."""

import pandas as pd
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

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
model = DecisionTreeRegressor(random_state=1)
model.fit(train_X, train_y)
train_mae = mean_absolute_error(train_y, model.predict(train_X))
valid_mae = mean_absolute_error(valid_y, model.predict(valid_X))

# --------------------------------------------------------------------------------------------------

print(f"mean absolute error: train {train_mae:,.0f}, validation {valid_mae:,.0f}")

predictions = model.predict(test_X)
pd.DataFrame({"Id": test_data.index, "SalePrice": predictions}).to_csv(
    "submission.csv", index=False
)
