# SPDX-License-Identifier: Apache-2.0
from pumice.executorch.backend import PumiceBackend as PumiceBackend
from pumice.executorch.options import PartitionOptions as PartitionOptions
from pumice.executorch.partitioner import PumicePartitioner as PumicePartitioner
from pumice.executorch.recipes import PumiceRecipeType as PumiceRecipeType
from pumice.executorch.taken_apart import not_in_core_aten as not_in_core_aten
