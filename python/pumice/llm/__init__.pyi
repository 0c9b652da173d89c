# SPDX-License-Identifier: Apache-2.0
from pumice.llm.export_model import export as export
from pumice.llm.language_model import LanguageModel as LanguageModel
from pumice.llm.language_model import load as load
from pumice.llm.sampling import Sampling as Sampling
