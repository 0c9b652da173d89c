# SPDX-License-Identifier: Apache-2.0
"""Running a file, without torch: sessions, devices, nesting of arguments, the self test."""
