"""Each library of the stack fits a straight line to the data; all results must agree."""

import tempfile
from pathlib import Path

import duckdb
import lightgbm
import matplotlib
import numpy
import pandas
import polars
import pyarrow.parquet
import scipy.stats
import sklearn.linear_model
import statsmodels.api
import torch

SLOPE, ABOVE = 3.0, 1.0
x = numpy.arange(200.0)
y = SLOPE * x + ABOVE

line = sklearn.linear_model.LinearRegression().fit(x.reshape(-1, 1), y)
assert numpy.allclose([line.coef_[0], line.intercept_], [SLOPE, ABOVE])
assert numpy.allclose(scipy.stats.linregress(x, y)[:2], [SLOPE, ABOVE])
fitted = statsmodels.api.OLS(y, statsmodels.api.add_constant(x)).fit()
assert numpy.allclose(fitted.params, [ABOVE, SLOPE])

# PyTorch finds it by gradient descent.
inputs = torch.from_numpy(x / 100).float().reshape(-1, 1)
wanted = torch.from_numpy(y / 100).float().reshape(-1, 1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(800):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
assert abs(model.weight.item() - SLOPE) < 0.05, model.weight
assert abs(model.bias.item() - ABOVE / 100) < 0.05, model.bias

trees = lightgbm.LGBMRegressor(verbose=-1, n_estimators=50).fit(x.reshape(-1, 1), y)
assert scipy.stats.pearsonr(trees.predict(x.reshape(-1, 1)), y)[0] > 0.99

frame = polars.DataFrame({"x": x, "y": y})
with tempfile.TemporaryDirectory() as directory:
    file = Path(directory, "line.parquet")
    frame.write_parquet(file)
    total = frame.select(polars.col("y").sum()).item()
    assert pandas.read_parquet(file)["y"].sum() == total
    assert pyarrow.parquet.read_table(file).num_rows == len(x)
    assert duckdb.sql(f"select sum(y) from '{file}'").fetchall()[0][0] == total

    matplotlib.use("agg")
    import matplotlib.pyplot
    import seaborn

    seaborn.lineplot(frame.to_pandas(), x="x", y="y")
    picture = Path(directory, "line.png")
    matplotlib.pyplot.savefig(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")

import altair

assert altair.Chart(frame.to_pandas()).mark_line().encode(x="x", y="y").to_dict()["mark"]
print("all agree")
