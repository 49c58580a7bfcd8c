/* bench_profile.h - where the device time of a pass goes, as a table.
 * Thread-safety: one thread. */
#ifndef APP_BENCH_PROFILE_H
#define APP_BENCH_PROFILE_H

#include "base/err.h"

#include "engine/engine.h"

/* Prints the last pass of a session that was opened with `profile`, and what
 * wall_seconds has beyond it. 0, or -1 with the reason. */
int bench_profile_print(struct session *s, enum profile_pass pass, const char *title,
                        double wall_seconds, struct err *err);

#endif
