/* drivers.h - keeps Vulkan drivers and layers mapped until the process ends,
 * so that a leak report names the library that tests/lsan.supp knows; without
 * it their leaks come from an unknown module. For tests that open a device. */
#ifndef TESTS_ENGINE_DRIVERS_H
#define TESTS_ENGINE_DRIVERS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DRIVERS_STAY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(DRIVERS_STAY)
__attribute__((visibility("default"))) int dlclose(void *handle);
int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
#endif

#endif
