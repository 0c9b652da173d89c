# SPDX-License-Identifier: Apache-2.0
"""Speech and sound."""

from __future__ import annotations

import math

import torch
import transformers as t
from torch import nn
from transformers.models.encodec.modeling_encodec import EncodecConv1d

from support.architectures.record import Architecture, Made, Part, tokens, trained
from support.architectures.text import decoder_steps

BANDWIDTH = 0.03  # of the small EnCodec: two quantizers


def _whisper() -> nn.Module:
    config = t.WhisperConfig(
        vocab_size=60, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=20, max_source_positions=25,
        max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return trained(t.WhisperForConditionalGeneration(config))


def whisper_encoder() -> Made:
    model = Part(_whisper().model.encoder, lambda encoder, bands: encoder(bands).last_hidden_state)
    return model, [(torch.randn(2, 20, 50),)]


def whisper_decoder() -> Made:
    model = _whisper()
    model.lm_head = model.proj_out
    return decoder_steps(model, heard=25)


def _encodec(numbers: bool) -> nn.Module:
    config = t.EncodecConfig(
        target_bandwidths=[BANDWIDTH], sampling_rate=24, num_filters=4, hidden_size=16, num_residual_layers=1,
        upsampling_ratios=[4, 2], codebook_size=32, codebook_dim=16, num_lstm_layers=1,
    )  # fmt: skip
    model = t.EncodecModel(config).eval()
    for quantizer in model.quantizer.layers:
        quantizer.codebook.embed.copy_(torch.randn(quantizer.codebook.embed.shape))
    for layer in model.modules():
        if numbers and isinstance(layer, EncodecConv1d):
            _keep_numbers(layer)
    return model


def _keep_numbers(layer: EncodecConv1d) -> None:
    """Its stride and sizes are buffers, which decide the padding: here they are numbers."""
    size, stride, total = (int(getattr(layer, name)) for name in ("kernel_size", "stride", "padding_total"))
    del layer.padding_total
    layer.padding_total = total

    def extra(x: torch.Tensor) -> int:
        length = x.shape[-1]
        return math.ceil((length - size + total) / stride) * stride + size - total - length

    layer._get_extra_padding_for_conv1d = extra


def encodec_encoder(numbers: bool) -> Made:
    model = Part(_encodec(numbers), lambda model, sound: model.encode(sound, bandwidth=BANDWIDTH).audio_codes)
    return model, [(torch.randn(1, 1, 80),) for _ in range(2)]


def encodec_decoder() -> Made:
    codes = [tokens(1, 1, 2, 20, vocabulary=32) for _ in range(2)]
    model = Part(_encodec(numbers=True), lambda model, codes: model.decode(codes, [None]).audio_values)
    return model, [(each,) for each in codes]


SOUND = (
    Architecture("Whisper", "encoder", whisper_encoder),
    Architecture("Whisper", "decoder, a token at a time, static cache", whisper_decoder),
    Architecture(
        "EnCodec", "encoder, as it is", lambda: encodec_encoder(numbers=False),
        refused="decides by the value of a tensor",
        instead="its convolutions keep stride and sizes in buffers, which decide the padding: make them numbers of "
        "Python before the export, as the next rows do",
    ),
    Architecture("EnCodec", "encoder, codes of two quantizers", lambda: encodec_encoder(numbers=True)),
    Architecture("EnCodec", "decoder, codes to sound", encodec_decoder),
)  # fmt: skip
