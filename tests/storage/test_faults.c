/* test_faults.c - each write of the store fails at each point, once through
 * the statements and once through the file system below SQLite, and the
 * database is as before. */
#include "tests/storage/scratch.h"

#include "base/fault.h"

/* ---- a file system that fails ------------------------------------------ */

/* SQLite's own file layer with a countdown in front of writing and syncing;
 * once it has run out, the disk stays full until somebody frees space. */
static struct {
    int left; /* calls until the first failure; 0: off */
    bool fired;
    int syncs;
} disk;

struct thin_file {
    sqlite3_file base;
    sqlite3_file *real; /* follows this struct in memory */
};

static sqlite3_vfs *real_vfs;

static bool disk_fails(void)
{
    if (disk.left == 0)
        return false;
    if (disk.left > 1) {
        disk.left--;
        return false;
    }
    disk.fired = true;
    return true;
}

#define REAL(f) (((struct thin_file *)(f))->real)

static int thin_close(sqlite3_file *f)
{
    return REAL(f)->pMethods ? REAL(f)->pMethods->xClose(REAL(f)) : SQLITE_OK;
}
static int thin_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int thin_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (!disk_fails())
        return REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
    REAL(f)->pMethods->xWrite(REAL(f), p, n / 2, at); /* what still fitted */
    return SQLITE_FULL;
}
static int thin_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int thin_sync(sqlite3_file *f, int flags)
{
    disk.syncs++;
    return disk_fails() ? SQLITE_IOERR_FSYNC : REAL(f)->pMethods->xSync(REAL(f), flags);
}
static int thin_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int thin_lock(sqlite3_file *f, int l)
{
    return REAL(f)->pMethods->xLock(REAL(f), l);
}
static int thin_unlock(sqlite3_file *f, int l)
{
    return REAL(f)->pMethods->xUnlock(REAL(f), l);
}
static int thin_reserved(sqlite3_file *f, int *out)
{
    return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}
static int thin_control(sqlite3_file *f, int op, void *arg)
{
    return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int thin_sector(sqlite3_file *f)
{
    return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int thin_traits(sqlite3_file *f)
{
    return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int thin_shm_map(sqlite3_file *f, int page, int size, int extend,
                        void volatile **p)
{
    return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, p);
}
static int thin_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void thin_shm_barrier(sqlite3_file *f)
{
    REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int thin_shm_unmap(sqlite3_file *f, int remove_file)
{
    return REAL(f)->pMethods->xShmUnmap(REAL(f), remove_file);
}

static const sqlite3_io_methods thin_methods = {
    .iVersion = 2,
    .xClose = thin_close,
    .xRead = thin_read,
    .xWrite = thin_write,
    .xTruncate = thin_truncate,
    .xSync = thin_sync,
    .xFileSize = thin_size,
    .xLock = thin_lock,
    .xUnlock = thin_unlock,
    .xCheckReservedLock = thin_reserved,
    .xFileControl = thin_control,
    .xSectorSize = thin_sector,
    .xDeviceCharacteristics = thin_traits,
    .xShmMap = thin_shm_map,
    .xShmLock = thin_shm_lock,
    .xShmBarrier = thin_shm_barrier,
    .xShmUnmap = thin_shm_unmap,
};

static int thin_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                     int *out_flags)
{
    struct thin_file *t = (struct thin_file *)f;
    (void)vfs;
    t->real = (sqlite3_file *)(t + 1);
    t->base.pMethods = &thin_methods;
    int rc = real_vfs->xOpen(real_vfs, name, t->real, flags, out_flags);
    if (rc != SQLITE_OK)
        t->base.pMethods = NULL;
    return rc;
}

static void install_disk(void)
{
    static sqlite3_vfs thin;
    real_vfs = sqlite3_vfs_find(NULL);
    thin = *real_vfs;
    thin.zName = "thin";
    thin.pNext = NULL;
    thin.szOsFile = (int)sizeof(struct thin_file) + real_vfs->szOsFile;
    thin.xOpen = thin_open;
    REQUIRE(sqlite3_vfs_register(&thin, 1) == SQLITE_OK);
}

/* ---- the operations ---------------------------------------------------- */

static int do_chat_new(struct store *st, struct err *err)
{
    int64_t id = 5;
    int rc = store_chat_new(st, "new", "m", &id, err);
    CHECK(rc == 0 ? id > 0 : id == 0);
    return rc;
}
static int do_rename(struct store *st, struct err *err)
{
    return store_chat_rename(st, 1, "another title", err);
}
static int do_model(struct store *st, struct err *err)
{
    return store_chat_set_model(st, 1, "another", "", err);
}
static int do_leaf(struct store *st, struct err *err)
{
    return store_chat_set_leaf(st, 1, 1, err);
}
static int do_add(struct store *st, struct err *err)
{
    struct message m = make_message(1, 2, ROLE_USER, "a question of some words");
    int rc = store_message_add(st, &m, err);
    CHECK(rc == 0 ? m.id && m.created_ms : !m.id && !m.created_ms);
    return rc;
}
static int do_update(struct store *st, struct err *err)
{
    static char text[30000];
    memset(text, 'w', sizeof text);
    for (size_t i = 7; i < sizeof text; i += 8)
        text[i] = ' ';
    struct message m = make_message(1, 1, ROLE_ASSISTANT, "");
    m.id = 2;
    m.text = text;
    m.text_bytes = sizeof text;
    return store_message_update(st, &m, err);
}
static int do_update_partial(struct store *st, struct err *err)
{
    struct message m = make_message(1, 1, ROLE_ASSISTANT, "some of the answer");
    m.id = 2;
    m.state = STATE_PARTIAL;
    return store_message_update(st, &m, err);
}
static int do_setting(struct store *st, struct err *err)
{
    return store_setting_set(st, "k", "new", err);
}
static int do_setting_drop(struct store *st, struct err *err)
{
    return store_setting_set(st, "k", NULL, err);
}
static int do_delete(struct store *st, struct err *err)
{
    return store_chat_delete(st, 1, err);
}

static int do_tidy(struct store *st, struct err *err)
{
    return store_tidy_all(st, 10000, err);
}
static int do_pin(struct store *st, struct err *err)
{
    return store_chat_set_pinned(st, 1, true, err);
}
static int do_draft(struct store *st, struct err *err)
{
    return store_chat_set_draft(st, 1, "half a sen", err);
}
static int do_propose(struct store *st, struct err *err)
{
    return store_chat_propose(st, 1, "a better title", err);
}

static const struct {
    const char *name;
    int (*run)(struct store *st, struct err *err);
} operations[] = {
    { "chat_new", do_chat_new },
    { "rename", do_rename },
    { "set_model", do_model },
    { "set_leaf", do_leaf },
    { "add", do_add },
    { "update", do_update },
    { "partial", do_update_partial },
    { "setting", do_setting },
    { "setting_drop", do_setting_drop },
    { "delete", do_delete },
    { "pin", do_pin },
    { "draft", do_draft },
    { "propose", do_propose },
};

static void fill(const char *path)
{
    struct err err;
    struct store *st = open_store(path);
    int64_t chat = new_chat(st, "a title");
    int64_t u = add(st, chat, 0, ROLE_USER, "question one");
    add(st, chat, u, ROLE_ASSISTANT, "answer one");
    add(st, new_chat(st, "another chat"), 0, ROLE_USER, "question two");
    OK(store_setting_set(st, "k", "v", &err));
    store_close(st);
}

static void check_as_before(struct store *st, const char *path, const char *before)
{
    struct err err;
    struct hit_list hits;
    char *now = dump(path);
    CHECK_STR(now, before);
    free(now);
    CHECK(sqlite3_get_autocommit(st->db));
    OK(store_search(st, "question", 10, &hits, &err));
    CHECK(hits.len == 2);
    hit_list_release(&hits);
}

/* Runs an operation with the nth statement step failing, for every n. */
static void test_each_step(void)
{
    struct scratch s;
    struct err err;
    scratch_enter(&s);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        REQUIRE(system("rm -rf tern") == 0);
        fill(s.db);
        char *before = dump(s.db);
        struct store *st = open_store(s.db);
        unsigned n = 1;
        for (;; n++) {
            err.text[0] = 0;
            fault_arm(FAULT_SQL, n);
            int rc = operations[i].run(st, &err);
            if (!fault_disarm(FAULT_SQL)) {
                CHECK(rc == 0);
                break;
            }
            CHECK(rc == -1 && strstr(err.text, "full; free some disk space"));
            check_as_before(st, s.db, before);
        }
        CHECK(n >= 5); /* begin, version, the statement, commit at least */
        char *after = dump(s.db);
        CHECK(strcmp(after, before)); /* without a fault it did something */
        check_integrity(st);
        store_close(st);
        free(after);
        free(before);
    }
    scratch_leave(&s);
}

/* The same below SQLite: the disk is full from the nth write or sync on. Then
 * space is freed, and the same store goes on. */
static void test_disk_full(void)
{
    struct scratch s;
    struct err err;
    int failures = 0;
    scratch_enter(&s);
    install_disk();
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        REQUIRE(system("rm -rf tern") == 0);
        fill(s.db);
        struct store *st = open_store(s.db);
        char *before = dump(s.db);
        for (int n = 1;; n++) {
            err.text[0] = 0;
            disk.left = n;
            disk.fired = false;
            int rc = operations[i].run(st, &err);
            bool fired = disk.fired;
            disk.left = 0;
            if (rc == 0) { /* what failed, if anything, came after the commit */
                CHECK(!fired || i == sizeof operations / sizeof *operations - 1);
                break;
            }
            CHECK(fired && err.text[0] && !strchr(err.text, '\n'));
            check_as_before(st, s.db, before);
            failures++;
        }
        check_integrity(st);
        store_close(st);
        free(before);
    }
    printf("# %d failures of the disk\n", failures);
    COUNT("faults", failures);
    CHECK(failures > 30);
    scratch_leave(&s);
}

static int syncs_of(struct store *st, int (*run)(struct store *, struct err *))
{
    struct err err;
    int before = disk.syncs;
    OK(run(st, &err));
    return disk.syncs - before;
}

/* What must outlive a power cut is synced before the call returns; the many
 * updates of an answer that grows are not. */
static void test_durability(void)
{
    struct scratch s;
    scratch_enter(&s);
    install_disk();
    fill(s.db);
    struct store *st = open_store(s.db);
    syncs_of(st, do_add); /* the first commit syncs the head of a new log */
    CHECK(syncs_of(st, do_add) == 1);
    CHECK(syncs_of(st, do_update_partial) == 0);
    CHECK(syncs_of(st, do_update_partial) == 0);
    CHECK(syncs_of(st, do_update) == 1);
    CHECK(syncs_of(st, do_update_partial) == 0);
    CHECK(syncs_of(st, do_setting) == 1 && syncs_of(st, do_chat_new) == 1);
    CHECK(syncs_of(st, do_delete) == 1);
    CHECK(syncs_of(st, do_tidy) >= 2); /* and the checkpoint */
    store_close(st);
    scratch_leave(&s);
}

/* An answer goes on while the disk is full and is whole once there is space. */
static void test_full_while_streaming(void)
{
    struct scratch s;
    struct err err;
    struct message_list l;
    struct buf text = BUF_INIT;
    int failed = 0;
    scratch_enter(&s);
    install_disk();
    fill(s.db);
    struct store *st = open_store(s.db);
    struct message m = make_message(1, 1, ROLE_ASSISTANT, "");
    m.state = STATE_PARTIAL;
    OK(store_message_add(st, &m, &err));
    for (int i = 0; i < 200; i++) {
        disk.left = i > 50 && i < 150;
        buf_printf(&text, "word%d ", i);
        m.text = text.v;
        m.text_bytes = text.len;
        m.state = i == 199 ? STATE_COMPLETE : STATE_PARTIAL;
        failed += store_message_update(st, &m, &err) < 0;
    }
    CHECK(failed == 99);
    OK(store_path(st, m.id, &l, &err));
    CHECK(l.len == 2 && l.v[1].state == STATE_COMPLETE);
    CHECK_STR(l.v[1].text, text.v);
    message_list_release(&l);
    buf_release(&text);
    check_integrity(st);
    store_close(st);
    scratch_leave(&s);
}

/* Reading statements fail cleanly as well. */
static void test_reads(void)
{
    struct scratch s;
    struct err err;
    scratch_enter(&s);
    fill(s.db);
    struct store *st = open_store(s.db);
    for (unsigned n = 1, fired = 1; fired; n++) {
        struct message_list l;
        struct chat_list c;
        struct hit_list h;
        int64_t *ids, id;
        size_t k;
        char *value;
        fired = 0;
        fault_arm(FAULT_SQL, n);
        CHECK(store_path(st, 2, &l, &err) == 0 ? l.len == 2 : !l.v && l.len == 0);
        fired |= fault_disarm(FAULT_SQL);
        message_list_release(&l);
        fault_arm(FAULT_SQL, n);
        CHECK(store_chat_list(st, &c, &err) == 0 ? c.len == 2 : !c.v && c.len == 0);
        fired |= fault_disarm(FAULT_SQL);
        chat_list_release(&c);
        fault_arm(FAULT_SQL, n);
        CHECK(store_search(st, "question", 9, &h, &err) == 0 ? h.len == 2
                                                             : !h.v && !h.len);
        fired |= fault_disarm(FAULT_SQL);
        hit_list_release(&h);
        fault_arm(FAULT_SQL, n);
        CHECK(store_siblings(st, 2, &ids, &k, &err) == 0 ? k == 1 : !ids && k == 0);
        fired |= fault_disarm(FAULT_SQL);
        free(ids);
        fault_arm(FAULT_SQL, n);
        CHECK(store_newest_leaf(st, 1, &id, &err) == 0 ? id == 2 : id == 0);
        fired |= fault_disarm(FAULT_SQL);
        fault_arm(FAULT_SQL, n);
        CHECK(store_setting_get(st, "k", &value, &err) == 0 ? !!value : !value);
        fired |= fault_disarm(FAULT_SQL);
        free(value);
        CHECK(n > 1 || fired);
    }
    check_integrity(st);
    store_close(st);
    scratch_leave(&s);
}

TEST_MAIN(T(test_each_step), T(test_disk_full), T(test_durability),
          T(test_full_while_streaming), T(test_reads))
