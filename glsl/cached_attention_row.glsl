// SPDX-License-Identifier: Apache-2.0
// attention/one_row.glslh.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant CACHE own i8
#include "attention/one_row.glslh"
