/* lock.c - one file for all conversations: the byte at a conversation's number
 * is locked. The kernel lets go of it when the process ends, however it ends. */
#include "app/lock.h"

#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct lock {
    int fd;          /* -1: nothing can be locked */
    int64_t chat_id; /* held, 0: none */
};

void lock_open(struct lock **out, const char *path)
{
    struct lock *l = mem_zalloc(sizeof *l);
    l->fd = -1;
    if (path && file_mkdirs_above(path, 0700, NULL) == 0)
        l->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    *out = l;
}

void lock_close(struct lock *l)
{
    if (l && l->fd >= 0)
        close(l->fd);
    free(l);
}

static bool byte_lock(const struct lock *l, short type, int64_t at)
{
    struct flock f = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
    return l->fd < 0 || fcntl(l->fd, F_SETLK, &f) == 0;
}

bool lock_take(struct lock *l, int64_t chat_id)
{
    if (l->chat_id == chat_id)
        return true;
    if (l->chat_id)
        byte_lock(l, F_UNLCK, l->chat_id);
    l->chat_id = 0;
    if (!chat_id)
        return true;
    if (!byte_lock(l, F_WRLCK, chat_id))
        return false;
    l->chat_id = chat_id;
    return true;
}
