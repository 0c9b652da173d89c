# SPDX-License-Identifier: Apache-2.0
"""What tests share: reference results, cases, and ways through export, load and run. `test` is on sys.path."""
