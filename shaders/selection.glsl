/* selection.glsl - which experts a token uses, as select.comp wrote it: per
 * token the ids of SLOTS experts, their weights, and the weight of the shared
 * expert, which counts as slot SLOTS. Expects SELECTION, the binding. */

layout(set = 0, binding = SELECTION, std430) readonly buffer selection_block {
    uint selection[];
};

uint selected_expert(uint token, uint slot)
{
    return selection[token * (2 * SLOTS + 1) + slot];
}

float selected_weight(uint token, uint slot)
{
    return uintBitsToFloat(selection[token * (2 * SLOTS + 1) + SLOTS + slot]);
}
