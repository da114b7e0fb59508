"""How the packages that hwprof works with are installed, from any folder, in the versions that it is proved with: torch
without a pin brings gigabytes of CUDA."""

from __future__ import annotations

from typing import Final

TORCH: Final = 'pip install torch==2.13.0 "hwprof[torch]"'
UI: Final = 'pip install "hwprof[ui]"'
YOLO: Final = 'pip install torch==2.13.0 torchvision==0.28.0 "hwprof[yolo]"'
BENCH: Final = 'pip install "hwprof[bench]"'
RAY: Final = 'pip install "hwprof[ray]"'
