from pathlib import Path

import torch
from nets import build_model

Path("checkpoints").mkdir(exist_ok=True)
Path("checkpoints/settings.json").write_text("{}")
torch.save(build_model({}).state_dict(), "checkpoints/best.pt")
