/* ref_rotate.c - the Walsh-Hadamard transform as it is defined. */
#include "engine/ref.h"

#include <math.h>

void ref_hadamard(const double *x, size_t n, double *out)
{
    for (size_t r = 0; r < n; r++) {
        double sum = 0;
        for (size_t c = 0; c < n; c++)
            sum += __builtin_popcountll(r & c) & 1 ? -x[c] : x[c];
        out[r] = sum / sqrt((double)n);
    }
}
