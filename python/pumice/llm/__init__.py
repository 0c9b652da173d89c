# SPDX-License-Identifier: Apache-2.0
"""Language models: from a Hugging Face folder to tokens generated on the device."""
