/* test_recover.c - the device fails under a conversation, with the shipped model
 * and a store on disk: nothing that was said is lost, the notice says what
 * happened, and the same program goes on with a new engine. */
#include "tests/app/chat_bench.h"
#include "tests/engine/drivers.h"

#include "base/fault.h"

#define MODEL    "assets/tern-mini.gguf"
#define QUESTION "What is the capital of France?"
#define ANSWER   "Paris. The city lies on the river Seine."

static char folder[48], db[64];

static void remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        perror(folder);
}

static void load(struct bench *b)
{
    b->c.settings.temperature = 0;
    b->c.keep_bytes = 1 << 28;
    conversation_load(&b->c, MODEL);
}

static void begin(struct bench *b)
{
    snprintf(folder, sizeof folder, "/tmp/tern-recover-XXXXXX");
    REQUIRE(mkdtemp(folder) && atexit(remove_folder) == 0);
    snprintf(db, sizeof db, "%s/tern.db", folder);
    snprintf(timelines, sizeof timelines, "%s/kept", folder);
    bench_open_db(b, db);
    load(b);
}

static void begin_ready(struct bench *b)
{
    begin(b);
    PUMP_UNTIL(b, b->c.phase != MODEL_LOADING);
    if (b->c.phase != MODEL_READY)
        printf("# %s\n", b->c.problem);
    REQUIRE(b->c.phase == MODEL_READY);
}

static void send(struct bench *b, const char *text)
{
    REQUIRE(conversation_send(&b->c, text, strlen(text), &b->err) == 0);
}

/* The message is there, and what there is of an answer is marked; another program
 * sees the same. The reason was told. */
static void check_failed(struct bench *b, size_t n, const char *reason)
{
    CHECK(n_messages(b) == n && !conversation_busy(&b->c));
    CHECK_STR(message_at(b, 0)->text, QUESTION);
    const struct message *m = message_at(b, n - 1);
    CHECK(n == 1 ||
          (m->state == STATE_FAILED && !strncmp(m->text, ANSWER, m->text_bytes)));
    if (!b->c.notice || !strstr(b->c.notice, reason))
        printf("# notice: %s\n", b->c.notice ? b->c.notice : "none");
    CHECK(b->c.notice && strstr(b->c.notice, reason));
    struct store *st;
    struct message_list l;
    struct err err;
    REQUIRE(store_open(&st, db, &err) == 0);
    CHECK(store_path(st, m->id, &l, &err) == 0 && l.len == n);
    CHECK_STR(l.v[n - 1].text, m->text);
    CHECK(l.v[n - 1].state == m->state);
    message_list_release(&l);
    store_close(st);
}

/* Asked once more, the same program answers; and all is there after a restart. */
static void check_goes_on(struct bench *b)
{
    size_t before = n_messages(b);
    int64_t chat = b->c.chat.id, id = message_at(b, before - 1)->id;
    REQUIRE(conversation_regenerate(&b->c, id, &b->err) == 0);
    PUMP_UNTIL(b, !conversation_busy(&b->c));
    CHECK_TEXTS(b, QUESTION, ANSWER);
    CHECK(message_at(b, 1)->state == STATE_COMPLETE);
    CHECK(message_at(b, 1)->siblings == before);
    bench_close(b);
    bench_open_db(b, db);
    REQUIRE(conversation_show(&b->c, chat, &b->err) == 0);
    CHECK_TEXTS(b, QUESTION, ANSWER);
    bench_close(b);
}

static void fails_in_prefill(enum fault_kind kind, const char *reason)
{
    struct bench b;
    begin_ready(&b);
    fault_arm(kind, 1);
    send(&b, QUESTION);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(fault_disarm(kind));
    check_failed(&b, 1, reason);
    check_goes_on(&b);
}

static void fails_in_decode(enum fault_kind kind, const char *reason)
{
    struct bench b;
    begin_ready(&b);
    send(&b, QUESTION);
    PUMP_UNTIL(&b, b.c.answer.generated > 0 || !conversation_busy(&b.c));
    fault_arm(kind, 1);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    if (!fault_disarm(kind)) /* the whole answer was faster than this thread */
        SKIP("the device is too fast to fail in the middle of an answer");
    check_failed(&b, 2, reason);
    check_goes_on(&b);
}

static void test_lost_in_prefill(void)
{
    fails_in_prefill(FAULT_DEVICE_LOST, "the device was lost");
}
static void test_lost_in_decode(void)
{
    fails_in_decode(FAULT_DEVICE_LOST, "the device was lost");
}
static void test_submit_in_prefill(void)
{
    fails_in_prefill(FAULT_DEVICE_SUBMIT, "submit");
}
/* While weights go up: no model, and why; a second try has one. */
static void test_lost_in_upload(void)
{
    struct bench b;
    begin(&b);
    fault_arm(FAULT_DEVICE_LOST, 3);
    PUMP_UNTIL(&b, b.c.phase != MODEL_LOADING);
    bool hit = fault_disarm(FAULT_DEVICE_LOST);
    CHECK(hit && b.c.phase == MODEL_UNUSABLE && strstr(b.c.problem, "lost"));
    conversation_load(&b.c, MODEL);
    PUMP_UNTIL(&b, b.c.phase != MODEL_LOADING);
    REQUIRE(b.c.phase == MODEL_READY);
    say(&b, QUESTION);
    CHECK_TEXTS(&b, QUESTION, ANSWER);
    bench_close(&b);
}

/* While a timeline goes to disk, which nobody waits for: no answer is lost. */
static void test_lost_while_keeping(void)
{
    struct bench b;
    begin_ready(&b);
    say(&b, QUESTION);
    PUMP_UNTIL(&b, !b.c.keeping);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", timelines);
    REQUIRE(system(command) == 0);
    fault_arm(FAULT_DEVICE_LOST, 1);
    b.c.keeping = true;
    worker_keep(b.worker, b.c.chat.id);
    PUMP_UNTIL(&b, !b.c.keeping);
    CHECK(fault_disarm(FAULT_DEVICE_LOST));
    say(&b, QUESTION);
    CHECK(n_messages(&b) == 4 && message_at(&b, 3)->state == STATE_COMPLETE);
    CHECK(message_at(&b, 3)->text_bytes > 0);
    bench_close(&b);
}

/* While one comes back: it is read anew. */
static void test_lost_while_fetching(void)
{
    struct bench b;
    begin_ready(&b);
    say(&b, QUESTION);
    PUMP_UNTIL(&b, !b.c.keeping);
    int64_t chat = b.c.chat.id;
    bench_close(&b);
    bench_open_db(&b, db);
    load(&b);
    PUMP_UNTIL(&b, b.c.phase != MODEL_LOADING);
    fault_arm(FAULT_DEVICE_LOST, 1);
    REQUIRE(conversation_show(&b.c, chat, &b.err) == 0);
    PUMP_UNTIL(&b, fault_count() == 1);
    say(&b, QUESTION);
    CHECK(n_messages(&b) == 4 && message_at(&b, 3)->state == STATE_COMPLETE);
    bench_close(&b);
}

TEST_MAIN(T(test_lost_in_prefill), T(test_lost_in_decode), T(test_submit_in_prefill),
          T(test_lost_in_upload), T(test_lost_while_keeping), T(test_lost_while_fetching))
