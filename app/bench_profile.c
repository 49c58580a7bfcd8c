/* bench_profile.c - `tern bench --profile`: a pass as a table of its steps. */
#include "app/bench_profile.h"

#include "app/out.h"

#include <string.h>

static void print_row(const char *label, const struct step_time *k, double all)
{
    out_printf("  %-24s %5u %10.3f %6.1f", label, k->steps, k->seconds * 1e3,
               all > 0 ? 100 * k->seconds / all : 0);
    if (k->bytes && k->seconds > 0)
        out_printf(" %10.1f %8.0f", (double)k->bytes * 1e-6,
                   (double)k->bytes * 1e-9 / k->seconds);
    out_printf("\n");
}

int bench_profile_print(struct session *s, enum profile_pass pass, const char *title,
                        double wall_seconds, struct err *err)
{
    struct step_time kinds[PROFILE_MAX_KINDS], sum = { 0 };
    size_t n;
    if (session_profile(s, pass, kinds, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        sum.steps += kinds[i].steps;
        sum.seconds += kinds[i].seconds;
        sum.bytes += kinds[i].bytes;
    }
    out_printf("\n%-26s %5s %10s %6s %10s %8s\n", title, "steps", "ms", "%", "MB read",
               "GB/s");
    for (size_t i = 0; i < n; i++)
        print_row(kinds[i].label, &kinds[i], sum.seconds);
    print_row("on the device", &sum, sum.seconds);
    out_printf("  %-24s %5s %10.3f\n", "submit, wait, read back", "",
               (wall_seconds - sum.seconds) * 1e3);
    return 0;
}
