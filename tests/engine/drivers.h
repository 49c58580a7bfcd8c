/* drivers.h - keeps Vulkan drivers and layers mapped until a process that is
 * built with a sanitizer ends: the suppressions tests/lsan.supp and
 * tests/tsan.supp name libraries, and an unloaded library has no name. For
 * tests that open a device. */
#ifndef TESTS_ENGINE_DRIVERS_H
#define TESTS_ENGINE_DRIVERS_H

#include <stdbool.h>
#include <stdlib.h>

/* Validation layers older than a driver's extensions hide them from tests:
 * TERN_TEST_LAYERS=0 runs without layers. */
static inline bool drivers_validate(void)
{
    const char *v = getenv("TERN_TEST_LAYERS");
    return !v || v[0] != '0';
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DRIVERS_STAY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(DRIVERS_STAY)
__attribute__((visibility("default"))) int dlclose(void *handle);
int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
#endif

#endif
