# SPDX-License-Identifier: Apache-2.0
"""The file as Python data: the program, its bytes, the writer. Nothing here but dtypes.py imports torch."""
