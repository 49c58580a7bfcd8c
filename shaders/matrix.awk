# matrix.awk - completes the cooperative matrix types of a SPIR-V module, given
# as one decimal word a line (shaders/tile_matrix.glsl says why). Component types
# written as 0xf16f16 and 0xf32f32 become the ids of the floats of 16 and 32
# bits, which are declared before all other types.
{ w[n++] = $1 } # as text: awk would round large numbers when printing

function copy(i, words) {
    for (words += i; i < words; i++)
        print w[i]
}

END {
    for (i = 5; i < n; i += int(w[i] / 65536))
        if (w[i] % 65536 == 22) # OpTypeFloat: id, width
            place[w[i + 2]] = i
    if (!(16 in place) || !(32 in place)) {
        print "matrix.awk: the module has no floats of 16 and 32 bits" > "/dev/stderr"
        exit 1
    }
    copy(0, 5)
    for (i = 5; i < n; i += words) {
        op = w[i] % 65536
        words = int(w[i] / 65536)
        if (op == 19) { # OpTypeVoid comes first
            copy(place[16], 3)
            copy(place[32], 3)
        }
        if (op == 4456) # OpTypeCooperativeMatrixKHR
            w[i + 2] = w[i + 2] == 15822614 ? w[place[16] + 1] : w[place[32] + 1]
        if (op != 22)
            copy(i, words)
    }
}
