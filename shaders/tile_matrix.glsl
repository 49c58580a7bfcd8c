/* tile_matrix.glsl - a subgroup's part of a tile as cooperative matrices of 16
 * by 16, f16 times f16 into f32.
 *
 * The extension is younger than many glslang packages, so its types and
 * instructions are spelled out. What glslang cannot express is a type as the
 * operand of a type: F16 and F32 stand for the component types, and
 * shaders/matrix.awk puts their ids in place. */
#extension GL_EXT_spirv_intrinsics : require

#define COOPERATIVE extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022]
const uint SCOPE_SUBGROUP = 3, EDGE = 16, USE_A = 0, USE_B = 1, USE_ACCUMULATOR = 2;
const uint ROW_MAJOR = 0, COLUMN_MAJOR = 1;
/* OpTypeCooperativeMatrixKHR */
#define F16 0xf16f16u
#define F32 0xf32f32u
#define matrix_w spirv_type(COOPERATIVE, id = 4456, F16, SCOPE_SUBGROUP, EDGE, EDGE, USE_A)
#define matrix_a spirv_type(COOPERATIVE, id = 4456, F16, SCOPE_SUBGROUP, EDGE, EDGE, USE_B)
#define matrix_sum \
    spirv_type(COOPERATIVE, id = 4456, F32, SCOPE_SUBGROUP, EDGE, EDGE, USE_ACCUMULATOR)
/* OpCooperativeMatrixLoadKHR, StoreKHR, MulAddKHR; OpCompositeConstruct. Strides
 * count elements of what the pointer points to. */
spirv_instruction(COOPERATIVE, id = 4457)
matrix_w load_w(spirv_by_reference uvec4 from, uint order, uint stride);
spirv_instruction(COOPERATIVE, id = 4457)
matrix_a load_a(spirv_by_reference uvec4 from, uint order, uint stride);
spirv_instruction(COOPERATIVE, id = 4458)
void store_sum(spirv_by_reference float to, matrix_sum m, uint order, uint stride);
spirv_instruction(COOPERATIVE, id = 4459)
matrix_sum multiply_add(matrix_w w, matrix_a a, matrix_sum sum);
spirv_instruction(COOPERATIVE, id = 80)
matrix_sum filled(float v);

const uint MATRIX_ROWS = SUB_ROWS / EDGE, MATRIX_TOKENS = SUB_TOKENS / EDGE;

struct part_t {
    matrix_sum sum[MATRIX_ROWS][MATRIX_TOKENS];
};

void part_clear(out part_t part)
{
    [[unroll]] for (uint i = 0; i < MATRIX_ROWS; i++)
        [[unroll]] for (uint j = 0; j < MATRIX_TOKENS; j++)
            part.sum[i][j] = filled(0.0);
}

void part_multiply(inout part_t part, uint row, uint token)
{
    [[unroll]] for (uint k = 0; k < DEPTH / EDGE; k++) {
        matrix_w w[MATRIX_ROWS];
        [[unroll]] for (uint i = 0; i < MATRIX_ROWS; i++)
            w[i] = load_w(tile_w[(row + i * EDGE) * STRIDE + k * (EDGE / 8)], ROW_MAJOR,
                          STRIDE);
        [[unroll]] for (uint j = 0; j < MATRIX_TOKENS; j++) {
            matrix_a a = load_a(tile_a[(token + j * EDGE) * STRIDE + k * (EDGE / 8)],
                                COLUMN_MAJOR, STRIDE);
            [[unroll]] for (uint i = 0; i < MATRIX_ROWS; i++)
                part.sum[i][j] = multiply_add(w[i], a, part.sum[i][j]);
        }
    }
}

/* The part's tokens 16 * group .. + 15 into `made`. */
void part_show(inout part_t part, uint group, uint row)
{
    [[unroll]] for (uint j = 0; j < MATRIX_TOKENS; j++)
        if (j == group)
            [[unroll]] for (uint i = 0; i < MATRIX_ROWS; i++)
                store_sum(made[row + i * EDGE], part.sum[i][j], COLUMN_MAJOR, MADE_STRIDE);
}
