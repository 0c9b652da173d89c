# SPDX-License-Identifier: Apache-2.0
# The tool chain of an Android NDK.
set(pumice_ndk_toolchain "$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
if(NOT EXISTS "${pumice_ndk_toolchain}")
  message(FATAL_ERROR "Set ANDROID_NDK_HOME to the folder of an Android NDK; there is no ${pumice_ndk_toolchain}.")
endif()
include("${pumice_ndk_toolchain}")
