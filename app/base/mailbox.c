/* mailbox.c - a ring under one lock, two conditions, one eventfd.
 * Invariants, whenever the lock is free: n <= capacity; the eventfd's counter
 * is over 0 exactly if n > 0 or the mailbox is shut. */
#include "base/mailbox.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
    pthread_mutex_t lock; /* guards all below but the sizes and fd */
    pthread_cond_t not_empty, not_full;
    size_t message_bytes, capacity;
    char *ring; /* [capacity][message_bytes] */
    size_t first, n;
    bool shut;
    int fd;
};

int mailbox_open(struct mailbox **out, size_t message_bytes, size_t capacity,
                 struct err *err)
{
    *out = NULL;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, "cannot create an event descriptor: %s", strerror(errno));
    struct mailbox *mb = mem_zalloc(sizeof *mb);
    mb->fd = fd;
    mb->message_bytes = message_bytes;
    mb->capacity = capacity;
    mb->ring = mem_array(capacity, message_bytes);
    pthread_mutex_init(&mb->lock, NULL);
    pthread_cond_init(&mb->not_empty, NULL);
    pthread_cond_init(&mb->not_full, NULL);
    *out = mb;
    return 0;
}

void mailbox_close(struct mailbox *mb)
{
    if (!mb)
        return;
    pthread_cond_destroy(&mb->not_full);
    pthread_cond_destroy(&mb->not_empty);
    pthread_mutex_destroy(&mb->lock);
    close(mb->fd);
    free(mb->ring);
    free(mb);
}

/* Both keep the invariant of the counter; neither can fail: the descriptor is
 * ours, and the counter is never near its limit. */
static void counter_raise(struct mailbox *mb)
{
    if (eventfd_write(mb->fd, 1) < 0)
        abort();
}

static void counter_clear(struct mailbox *mb)
{
    eventfd_t v;
    if (eventfd_read(mb->fd, &v) < 0)
        abort();
}

static char *slot(struct mailbox *mb, size_t i)
{
    return mb->ring + (mb->first + i) % mb->capacity * mb->message_bytes;
}

static bool post(struct mailbox *mb, const void *message, bool wait)
{
    pthread_mutex_lock(&mb->lock);
    while (wait && mb->n == mb->capacity && !mb->shut)
        pthread_cond_wait(&mb->not_full, &mb->lock);
    bool ok = mb->n < mb->capacity && !mb->shut;
    if (ok) {
        memcpy(slot(mb, mb->n), message, mb->message_bytes);
        if (mb->n++ == 0)
            counter_raise(mb);
        pthread_cond_signal(&mb->not_empty);
    }
    pthread_mutex_unlock(&mb->lock);
    return ok;
}

static bool take(struct mailbox *mb, void *message, bool wait)
{
    pthread_mutex_lock(&mb->lock);
    while (wait && mb->n == 0 && !mb->shut)
        pthread_cond_wait(&mb->not_empty, &mb->lock);
    bool ok = mb->n > 0;
    if (ok) {
        memcpy(message, slot(mb, 0), mb->message_bytes);
        mb->first = (mb->first + 1) % mb->capacity;
        if (--mb->n == 0 && !mb->shut)
            counter_clear(mb);
        pthread_cond_signal(&mb->not_full);
    }
    pthread_mutex_unlock(&mb->lock);
    return ok;
}

bool mailbox_post(struct mailbox *mb, const void *message)
{
    return post(mb, message, true);
}

bool mailbox_try_post(struct mailbox *mb, const void *message)
{
    return post(mb, message, false);
}

bool mailbox_take(struct mailbox *mb, void *message)
{
    return take(mb, message, true);
}

bool mailbox_try_take(struct mailbox *mb, void *message)
{
    return take(mb, message, false);
}

void mailbox_shut(struct mailbox *mb)
{
    pthread_mutex_lock(&mb->lock);
    if (!mb->shut && mb->n == 0)
        counter_raise(mb);
    mb->shut = true;
    pthread_cond_broadcast(&mb->not_empty);
    pthread_cond_broadcast(&mb->not_full);
    pthread_mutex_unlock(&mb->lock);
}

bool mailbox_is_shut(struct mailbox *mb)
{
    pthread_mutex_lock(&mb->lock);
    bool shut = mb->shut;
    pthread_mutex_unlock(&mb->lock);
    return shut;
}

int mailbox_fd(const struct mailbox *mb)
{
    return mb->fd;
}
