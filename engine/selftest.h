/* selftest.h - whether a device computes rightly: every kernel on small inputs,
 * as passes would run it there, against the plain C references. A driver that
 * miscompiles a kernel otherwise shows as fluent nonsense. */
#ifndef ENGINE_SELFTEST_H
#define ENGINE_SELFTEST_H

#include "engine/device_model.h"
#include "engine/engine.h"

/* What is tested. */
struct selftest_scope {
    uint32_t formats;  /* bit f: the products and the embedding of device format f */
    bool floats, int8; /* arithmetic of the products */
    bool recurrent, attention, experts, rotation; /* parts of a pass */
};

/* What a model needs, whose weights are on the device. */
struct selftest_scope selftest_scope_of(const struct engine *e);
/* Runs it with the engine's shapes; pipelines that are built stay the engine's. 0,
 * or -1 with the reason: the first kernel that computes wrongly, or what failed.
 * each: see device_test in engine.h; NULL is fine. */
int selftest_run(struct engine *e, const struct selftest_scope *scope,
                 device_test_fn *each, void *arg, struct err *err);
/* The same for all that the model needs, unless the folder holds a file that says
 * that it was well before, with this device, driver and program. Writes that file,
 * if it may. */
int selftest_once(struct engine *e, const char *folder, bool may_write, struct err *err);

#endif
