# SPDX-License-Identifier: Apache-2.0
"""Losses of margins, and the gradient of softmax, as eager PyTorch computes them: torch's own forms have NaN at other
places, and count labels after the end."""

from __future__ import annotations

import torch

from pumice.decompositions.table import takes_apart

aten = torch.ops.aten


def _violations(away: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """What is above the margin, and 0 where it is NaN."""
    return torch.where(counted & (away > 0), away, 0)


def _reduced(loss: torch.Tensor, reduction: int, shape: torch.Size) -> torch.Tensor:
    """reduction: 0 none, 1 mean, 2 sum, of a loss for each row."""
    return loss.reshape(shape) if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


@takes_apart(aten.multi_margin_loss.default)
def multi_margin_loss(
    self: torch.Tensor,
    target: torch.Tensor,
    p: float = 1,
    margin: float = 1,
    weight: torch.Tensor | None = None,
    reduction: int = 1,
) -> torch.Tensor:
    """Of each row the mean of what comes too near to the element of its class, or of its squares."""
    rows, labels = torch.atleast_2d(self), target.reshape(-1, 1)
    away = margin - rows.gather(1, labels) + rows
    loss = _violations(away, torch.arange(rows.shape[1]) != labels)
    loss = loss if p == 1 else loss * loss
    if weight is not None:
        loss = torch.where(loss > 0, loss * weight[labels], 0)
    return _reduced(loss.mean(1), reduction, target.shape)


@takes_apart(aten.multilabel_margin_loss_forward.default)
def multilabel_margin_loss_forward(
    self: torch.Tensor, target: torch.Tensor, reduction: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels end at the first -1. Beside the loss: which elements are labels."""
    rows, labels = torch.atleast_2d(self), torch.atleast_2d(target)
    count = rows.shape[1]
    at = torch.arange(count)
    valid = at < torch.where(labels == -1, at, count).amin(1, keepdim=True)
    labels = torch.where(valid, labels, 0)
    is_label = ((labels.unsqueeze(2) == at) & valid.unsqueeze(2)).any(1)
    away = 1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)
    loss = _violations(away, valid.unsqueeze(2) & ~is_label.unsqueeze(1)).sum((1, 2)) / count
    shape = target.shape[:-1] if target.dim() else target.shape
    return _reduced(loss, reduction, shape), is_label.to(self.dtype).reshape(target.shape)


@takes_apart(aten._softmax_backward_data.default)
def softmax_backward_data(
    grad_output: torch.Tensor, output: torch.Tensor, dim: int, input_dtype: torch.dtype
) -> torch.Tensor:
    """(grad - sum(grad * y)) * y: torch's form of two products has no answer where y is infinite."""
    grad, y = grad_output.to(torch.float32), output.to(torch.float32)
    return ((grad - (grad * y).sum(dim, keepdim=True)) * y).to(input_dtype)
