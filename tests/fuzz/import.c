/* import.c - conversations from files: what can be imported is exported again
 * and comes back the same; what cannot leaves nothing behind. */
#include "tests/fuzz/fuzz.h"

#include "app/json.h"
#include "app/transfer.h"

const unsigned fuzz_rounds = 600;
const size_t fuzz_max_bytes = 1 << 14;

static struct store *the_store(void)
{
    static struct store *st;
    struct err err;
    if (!st)
        MUST(store_open(&st, ":memory:", &err) == 0);
    return st;
}

static size_t n_chats(struct store *st)
{
    struct chat_list l;
    struct err err;
    MUST(store_chat_list(st, &l, &err) == 0);
    size_t n = l.len;
    chat_list_release(&l);
    return n;
}

/* Everything but ids of messages, which are new in each copy. */
static void export_plain(struct store *st, int64_t chat, struct buf *out)
{
    struct buf json = BUF_INIT;
    struct err err;
    MUST(transfer_json(st, chat, true, &json, &err) == 0);
    for (const char *s = buf_cstr(&json); *s; s++) {
        static const char *const keys[] = { "\"id\":", "\"parent\":", "\"leaf\":" };
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (!strncmp(s, keys[i], strlen(keys[i])))
                for (s += strlen(keys[i]); *s >= '0' && *s <= '9';)
                    s++;
        buf_char(out, *s);
    }
    buf_release(&json);
}

static void export_and_back(struct store *st, int64_t chat)
{
    struct buf markdown = BUF_INIT, json = BUF_INIT, first = BUF_INIT, again = BUF_INIT;
    struct err err;
    int64_t copy;
    MUST(transfer_markdown(st, chat, true, &markdown, &err) == 0);
    MUST(transfer_text(st, chat, false, &markdown, &err) == 0);
    MUST(transfer_json(st, chat, true, &json, &err) == 0);
    MUST(transfer_import(st, json.v, json.len, &copy, &err) == 0);
    export_plain(st, chat, &first);
    export_plain(st, copy, &again);
    MUST(!strcmp(buf_cstr(&first), buf_cstr(&again)));
    MUST(store_chat_delete(st, copy, &err) == 0);
    buf_release(&markdown);
    buf_release(&json);
    buf_release(&first);
    buf_release(&again);
}

/* Each of what was added. */
static void check_all(struct store *st, size_t n)
{
    struct chat_list l;
    struct err err;
    MUST(store_chat_list(st, &l, &err) == 0 && l.len == n);
    for (size_t i = 0; i < n; i++)
        export_and_back(st, l.v[i].id);
    for (size_t i = 0; i < n; i++)
        MUST(store_chat_delete(st, l.v[i].id, &err) == 0);
    chat_list_release(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store *st = the_store();
    struct err err = { "" };
    struct import_result r = { 0 };
    if (transfer_import_any(st, (const char *)data, size, &r, &err) == 0) {
        MUST(r.n > 0 && r.last > 0);
        check_all(st, r.n);
    } else {
        MUST(r.n == 0 && err.text[0] && one_line(err.text));
    }
    MUST(n_chats(st) == 0);
    return 0;
}
