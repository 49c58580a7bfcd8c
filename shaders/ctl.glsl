/* ctl.glsl - what every kernel starts with: push constants, the control block
 * and the workgroup size as specialization constant 0.
 *
 * Subgroup operations and barriers must be reached by every invocation: a loop
 * around them counts from a value that all share, a branch around them is the
 * same for all. CPU devices forgive otherwise, GPUs hang, even where all happen
 * to make the same rounds. */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "push.h"

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
