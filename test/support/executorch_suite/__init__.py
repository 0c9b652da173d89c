# SPDX-License-Identifier: Apache-2.0
"""The tests that ExecuTorch's wheel carries for backends, with Pumice as the backend: `./dev test-executorch`."""
