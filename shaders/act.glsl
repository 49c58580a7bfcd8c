/* act.glsl - writing one block of an activation vector (engine/kernel.h).
 * Spec constant 1 (INT8) chooses the plane format where a kernel has both. */

/* Scale of a block whose largest magnitude is amax, and its inverse. */
float act_scale(float amax)
{
    return amax / 127.0;
}

int act_round(float v, float amax)
{
    return amax > 0.0 ? int(roundEven(v * (127.0 / amax))) : 0;
}

uint act_pack(ivec4 q)
{
    return uint(q.x & 255) | uint(q.y & 255) << 8 | uint(q.z & 255) << 16 |
           uint(q.w & 255) << 24;
}
