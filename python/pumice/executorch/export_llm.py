# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's export of language models, with Pumice as the backend:

    python -m pumice.executorch.export_llm --config llama.yaml [model.use_kv_cache=true ...]

The file is that of executorch.extension.llm.export.export_llm, whose backends are a fixed list, and may also have

    backend: {pumice: {enabled: true, device: ..., strict: ...}}      # the rest: options of PumicePartitioner
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from executorch.examples.models.llama import export_llama_lib
from executorch.extension.llm.export.config.llm_config import LlmConfig
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pumice.errors import Error, InvalidInputError
from pumice.executorch.partitioner import PumicePartitioner


def export_llm(config: Mapping[str, Any]) -> tuple[str, PumicePartitioner]:
    """Exports, lowers and saves what the configuration says. `config`: LlmConfig as nested dicts, with backend.pumice.

    Other backends that it enables get what Pumice leaves (XNNPACK), or are refused (all others).
    Returns the name of the .pte and the partitioner, whose `report` says what runs where.
    Raises InvalidInputError for a configuration that ExecuTorch does not take or that does not enable Pumice.
    """
    known, options = _parsed(config)
    partitioner = PumicePartitioner(options)
    others = export_llama_lib._get_xnnpack_partitioners(known) or []
    export_llama_lib._validate_args(known)
    builder = export_llama_lib._prepare_for_llama_export(known).export()
    builder.run_canonical_optimizations()
    builder.generate_etrecord = known.debug.generate_etrecord
    builder = builder.pt2e_quantize([]).to_edge_transform_and_lower([partitioner, *others]).to_executorch()
    name = f"pumice_{builder.modelname}"
    builder.save_to_pte(export_llama_lib._get_output_filename(known, name, builder.output_dir, builder.dtype))
    return builder.get_saved_pte_filename(), partitioner


def _parsed(config: Mapping[str, Any]) -> tuple[LlmConfig, dict[str, Any]]:
    given = OmegaConf.create(dict(config))
    pumice = (OmegaConf.to_container(given).get("backend") or {}).get("pumice")
    if not isinstance(pumice, dict) or pumice.pop("enabled", False) is not True:
        raise _invalid("backend.pumice.enabled", "the configuration does not say backend.pumice.enabled: true")
    del given.backend["pumice"]
    try:
        known = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(LlmConfig), given))
    except (OmegaConfBaseException, ValueError) as error:
        raise _invalid("config", f"ExecuTorch's LlmConfig does not take this configuration: {error}") from error
    for name in vars(known.backend):
        if name not in ("xnnpack", "torchao") and getattr(known.backend, name).enabled:
            raise _invalid(f"backend.{name}", f"Pumice goes with xnnpack, not with {name}")
    if known.multimethod.enabled or known.quantization.pt2e_quantize:
        what = "multimethod" if known.multimethod.enabled else "quantization.pt2e_quantize"
        raise _invalid(what, f"{what} is not for Pumice; quantize with quantization.qmode")
    return known, pumice


def _invalid(path: str, text: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", stage="export", path=path)


def main(arguments: list[str] | None = None) -> None:
    """The command line; prints the name of the file and what runs where."""
    parser = argparse.ArgumentParser(prog="python -m pumice.executorch.export_llm", description=__doc__.split("\n")[0])
    parser.add_argument("--config", type=Path, required=True, help="a YAML file, as the module's text says")
    parser.add_argument("change", nargs="*", help="section.name=value, which wins over the file")
    options = parser.parse_args(arguments)
    try:
        changes = OmegaConf.from_dotlist(options.change)
        name, partitioner = export_llm(OmegaConf.merge(OmegaConf.load(options.config), changes))
    except (Error, OSError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    print("\n".join([name, *str(partitioner.report).split("\n")[: 1 + len(partitioner.report.partitions)]]))


if __name__ == "__main__":
    main()
