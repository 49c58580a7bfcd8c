/* fault.h - lets a test make the Nth operation of a kind fail, so that what
 * ships is what is tested. Nothing in the program itself arms it; unarmed, a
 * fault_hit is one relaxed load in front of an operation that costs thousands
 * of times more.
 *     for (unsigned n = 1;; n++) {
 *         fault_arm(FAULT_WRITE, n);
 *         int rc = file_write_atomic(path, bytes, len, &err);
 *         if (!fault_disarm(FAULT_WRITE))
 *             break;                      (all writes were tried: rc is 0)
 *         ... rc is -1, and nothing has changed ...
 *     } */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

enum fault_kind {
    FAULT_OPEN,         /* open or create a file: EACCES */
    FAULT_WRITE,        /* one write call: ENOSPC */
    FAULT_FSYNC,        /* EIO */
    FAULT_RENAME,       /* EIO */
    FAULT_MAP,          /* one file to be mapped: ENOMEM */
    FAULT_SQL,          /* one step of a statement: as if SQLITE_FULL */
    FAULT_DEVICE_ALLOC, /* one allocation of device memory */
    FAULT_DEVICE_SUBMIT, /* the device takes no work now; it may later */
    FAULT_DEVICE_WAIT,   /* waiting fails while the device goes on */
    FAULT_DEVICE_LOST,   /* found out when waiting for work */
    FAULT_DEVICE_WRONG,  /* a result that a self-test reads is another one */
    FAULT_KINDS
};

/* The nth operation of this kind from now on fails, once; n counts from 1. */
void fault_arm(enum fault_kind kind, unsigned n);
/* Stops it. Returns whether it had fired since it was armed. */
bool fault_disarm(enum fault_kind kind);
/* For the code under test: must the operation about to be made fail? Exactly
 * one caller is told so, with errno as above: `fault_hit(FAULT_WRITE) ? -1 :
 * write(...)`. Thread-safety: any thread. */
bool fault_hit(enum fault_kind kind);
/* Failures of all kinds that this process has had. */
unsigned fault_count(void);

#endif
