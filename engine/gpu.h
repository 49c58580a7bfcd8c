/* gpu.h - the Vulkan device: the only file group that names Vk*.
 *
 *   gpu_device.c    instance, choice of device, teardown
 *   gpu_query.c     what a physical device offers: features, limits
 *   gpu_memory.c    buffers by use, staging upload and download
 *   gpu_pipeline.c  one compute pipeline per kernel variant
 *   gpu_command.c   recording with planned barriers, submit, wait
 *   gpu_profile.c   timestamps of recorded steps
 *
 * Every function that can fail returns -1 with the reason, the size and the
 * object's label in err. Thread-safety: one thread at a time per gpu. */
#ifndef ENGINE_GPU_H
#define ENGINE_GPU_H

#include "base/err.h"
#include "engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

enum { GPU_MAX_BINDINGS = 16, GPU_MAX_SPEC = 16, GPU_PUSH_BYTES = 128 };

struct gpu;

struct gpu_params {
    int device;     /* index + 1 in gpu_list order, 0: choose */
    bool validate;  /* validation + synchronization validation layers */
};
int gpu_open(struct gpu **out, const struct gpu_params *p, struct err *err);
void gpu_close(struct gpu *gpu);
const struct device_info *gpu_info(const struct gpu *gpu);
/* Whether the device was lost: every call but closing fails from now on. */
bool gpu_lost(const struct gpu *gpu);
/* Messages of the validation layers (warnings and errors) so far; the text of
 * the first one, "" if none. */
uint32_t gpu_validation_errors(const struct gpu *gpu, const char **first);
/* Bytes of device memory allocated now. */
uint64_t gpu_allocated(const struct gpu *gpu);
/* Bytes that the heap of weights has left for this process now, as the driver
 * sees it; where it does not say, what the process itself has not taken. */
uint64_t gpu_free_bytes(const struct gpu *gpu);
/* Same as device_list of engine.h. */
int gpu_list(struct device_info *out, size_t max, size_t *n, int *chosen, struct err *err);

/* ---- memory ------------------------------------------------------------- */

enum gpu_use {
    GPU_DEVICE,   /* device-local only: weights, KV, state, scratch */
    GPU_SHARED,   /* device-local and host-visible where there is such memory,
                   * else host-visible: small blocks the host writes */
    GPU_READBACK, /* host-visible, cached where possible: ids, logits */
    GPU_STAGING,  /* host-visible source and target of copies */
};

struct gpu_buffer {
    VkBuffer vk;
    VkDeviceMemory memory;
    uint64_t bytes;
    void *map;          /* NULL for GPU_DEVICE */
    enum gpu_use use;
};

/* A byte range of a buffer; what kernels are bound to. */
struct gpu_span {
    const struct gpu_buffer *buffer;
    uint64_t offset, bytes;
};

/* Sizes are rounded up to 256; contents start as zeros for mapped memory and
 * are undefined for GPU_DEVICE (see gpu_fill). label appears in errors. */
int gpu_buffer_open(struct gpu_buffer *b, struct gpu *gpu, uint64_t bytes,
                    enum gpu_use use, const char *label, struct err *err);
/* A zeroed struct is fine. The device must not be using it any more. */
void gpu_buffer_close(struct gpu_buffer *b, struct gpu *gpu);
struct gpu_span gpu_span_all(const struct gpu_buffer *b);
struct gpu_span gpu_span_at(const struct gpu_buffer *b, uint64_t offset, uint64_t bytes);
/* Offsets of spans are multiples of this (a power of two, at least 16). */
uint64_t gpu_span_align(const struct gpu *gpu);

/* Blocking copies through a bounded staging ring (or directly into mapped
 * memory). Any size and offset that is a multiple of 4, but not nothing; an
 * error while a submit is in flight. */
int gpu_upload(struct gpu *gpu, struct gpu_span to, const void *from, struct err *err);
int gpu_download(struct gpu *gpu, void *to, struct gpu_span from, struct err *err);
/* Writes a repeated word; the only way to clear a state. */
int gpu_fill(struct gpu *gpu, struct gpu_span to, uint32_t word, struct err *err);

/* ---- kernels ------------------------------------------------------------ */

/* One SPIR-V module as a kernel: all bindings are storage buffers 0..n-1. */
struct gpu_module {
    const char *name;
    const uint32_t *spirv;
    size_t spirv_bytes;
    uint32_t n_bindings;
    uint32_t writes;     /* bit i: binding i is written (maybe read too) */
    uint32_t push_bytes;
};

struct gpu_kernel {
    const struct gpu_module *module;
    VkShaderModule shader;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
};

/* spec[i] is specialization constant i (constant_id 0 is by convention the
 * workgroup size x). A pipeline that cannot be built fails with its name. */
int gpu_kernel_open(struct gpu_kernel *k, struct gpu *gpu, const struct gpu_module *m,
                    const uint32_t *spec, uint32_t n_spec, struct err *err);
void gpu_kernel_close(struct gpu_kernel *k, struct gpu *gpu);

/* ---- commands ----------------------------------------------------------- */

/* A recorded list of dispatches and copies, submitted any number of times.
 * Barriers are planned while recording from the byte ranges that each entry
 * reads and writes: read-after-write, write-after-read and write-after-write
 * all separate; independent entries share a step. A full barrier stands at
 * the start, so that lists may follow each other in one submit. */
struct gpu_commands;

int gpu_commands_open(struct gpu_commands **out, struct gpu *gpu, struct err *err);
void gpu_commands_close(struct gpu_commands *c);
/* Forgets what was recorded and starts anew; not while it is in flight. */
int gpu_record_begin(struct gpu_commands *c, struct err *err);

struct gpu_dispatch {
    const struct gpu_kernel *kernel;
    struct gpu_span bind[GPU_MAX_BINDINGS]; /* one per binding */
    const void *push;                       /* module->push_bytes bytes */
    uint32_t groups[3];
    bool beside;  /* shares the step of the entry before it, and of those that
                   * this one stands beside: their ranges may overlap, but no
                   * element that one of them writes is another's */
    uint64_t reads;                         /* bytes it cannot do without, for
                                             * the profiler; 0: not counted */
    const char *label;                      /* kind of step, for errors and the
                                             * profiler; NULL: the kernel's name;
                                             * must outlive the list */
};
int gpu_record(struct gpu_commands *c, const struct gpu_dispatch *d, struct err *err);
int gpu_record_copy(struct gpu_commands *c, struct gpu_span to, struct gpu_span from,
                    struct err *err);
int gpu_record_end(struct gpu_commands *c, struct err *err);
/* Dependent steps (barriers + 1) and dispatches of the recorded list. */
uint32_t gpu_recorded_steps(const struct gpu_commands *c);
uint32_t gpu_recorded_dispatches(const struct gpu_commands *c);

/* Takes effect at the next gpu_record_begin: a timestamp after each step. On
 * devices without timestamps gpu_profile_read fails. */
void gpu_profile_enable(struct gpu_commands *c, bool on);
/* Calls each() once a step in order, with the label of the step's first entry
 * and what its entries read, for the last run of the list; after gpu_wait. */
struct gpu_step {
    const char *label;
    double nanoseconds;
    uint64_t reads;
};
typedef void gpu_profile_fn(void *arg, const struct gpu_step *step);
int gpu_profile_read(struct gpu_commands *c, gpu_profile_fn *each, void *arg,
                     struct err *err);

/* Submits the lists in order, `repeat` times the whole sequence; returns at
 * once. At most one submit is in flight: gpu_wait before the next. */
int gpu_submit(struct gpu *gpu, struct gpu_commands *const *lists, uint32_t n,
               uint32_t repeat, struct err *err);
/* Waits for the submit in flight (at most timeout_ns; 0: no limit). Device
 * loss is an error that names the last label. */
int gpu_wait(struct gpu *gpu, uint64_t timeout_ns, struct err *err);

#endif
