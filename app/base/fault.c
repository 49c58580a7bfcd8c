/* fault.c - countdowns to a failure. This is the program's only mutable state
 * of file scope besides signal flags: a fault concerns the process, and handing
 * a context to every write for the sake of tests would cost more than it says.
 * Invariant: a countdown is 0 unless a test armed it. */
#include "base/fault.h"

#include <errno.h>
#include <stdatomic.h>

static struct {
    atomic_uint left[FAULT_KINDS];
    atomic_bool fired[FAULT_KINDS];
    atomic_uint count;
} countdown;

static const int reasons[FAULT_KINDS] = {
    [FAULT_OPEN] = EACCES, [FAULT_WRITE] = ENOSPC, [FAULT_FSYNC] = EIO,
    [FAULT_RENAME] = EIO,  [FAULT_MAP] = ENOMEM,   [FAULT_SQL] = ENOSPC,
    [FAULT_DEVICE_ALLOC] = ENOMEM, [FAULT_DEVICE_SUBMIT] = ENOMEM,
    [FAULT_DEVICE_WAIT] = ENOMEM,  [FAULT_DEVICE_LOST] = EIO,
    [FAULT_DEVICE_WRONG] = EIO,
};

void fault_arm(enum fault_kind kind, unsigned n)
{
    atomic_store(&countdown.fired[kind], false);
    atomic_store(&countdown.left[kind], n);
}

bool fault_disarm(enum fault_kind kind)
{
    atomic_store(&countdown.left[kind], 0);
    return atomic_load(&countdown.fired[kind]);
}

bool fault_hit(enum fault_kind kind)
{
    unsigned left = atomic_load_explicit(&countdown.left[kind], memory_order_relaxed);
    while (left) {
        if (!atomic_compare_exchange_weak(&countdown.left[kind], &left, left - 1))
            continue;
        if (left > 1)
            return false;
        atomic_store(&countdown.fired[kind], true);
        atomic_fetch_add(&countdown.count, 1);
        errno = reasons[kind];
        return true;
    }
    return false;
}

unsigned fault_count(void)
{
    return atomic_load(&countdown.count);
}
