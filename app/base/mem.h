/* mem.h - host allocation that cannot fail: exhaustion calls abort() in one
 * place; the full-screen program restores the terminal on SIGABRT. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#define MEM_RESULT __attribute__((returns_nonnull, warn_unused_result))
/* All return memory that the caller releases with free(). A size of 0 gives a
 * pointer that may be freed. Thread-safety: as malloc. */
void *mem_alloc(size_t bytes) MEM_RESULT;
void *mem_zalloc(size_t bytes) MEM_RESULT;
void *mem_realloc(void *p, size_t bytes) MEM_RESULT;
/* n * size with an overflow check. */
void *mem_array(size_t n, size_t size) MEM_RESULT;
void *mem_regrow(void *p, size_t n, size_t size) MEM_RESULT;
char *mem_strdup(const char *s) MEM_RESULT;
/* Copies bytes and adds a NUL. */
char *mem_strndup(const char *s, size_t bytes) MEM_RESULT;

#endif
