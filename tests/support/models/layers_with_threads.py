"""Layers that leave their work to threads which end with them."""

import threading

import torch


class Helped(torch.nn.Module):
    """A thread of its own multiplies, and fills new pages."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.randn(512, 512)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        thread = threading.Thread(target=self._work)
        thread.start()
        thread.join()
        return numbers

    def _work(self) -> None:
        torch.set_num_threads(1)
        for _ in range(20):
            self.factor @ self.factor
        torch.ones(8 << 20)


def model() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    plain = torch.nn.Linear(512, 512)
    return torch.nn.Sequential(plain, Helped()).eval(), (torch.randn(64, 512),)
