/* search.c - what a user may look for: never an error, never a foreign chat. */
#include "tests/fuzz/fuzz.h"

#include "storage/store.h"

const unsigned fuzz_rounds = 800;
const size_t fuzz_max_bytes = 1 << 10;

static struct store *the_store(void)
{
    static const char *const texts[] = { "What is \"NEAR\" to (Paris)?",
                                         "caf\u00e9 AND tea", "100% _sure_ * of it",
                                         "\u6f22\u5b57 in a line" };
    static struct store *st;
    struct err err;
    int64_t chat;
    if (st)
        return st;
    MUST(store_open(&st, ":memory:", &err) == 0);
    MUST(store_chat_new(st, "a title: OR NOT", "m", &chat, &err) == 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", texts[i]);
        struct message m = {
            .chat_id = chat, .text = text, .text_bytes = strlen(text), .role = ROLE_USER
        };
        MUST(store_message_add(st, &m, &err) == 0);
    }
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hit_list hits;
    struct err err = { "" };
    char words[1025];
    size = size < sizeof words ? size : sizeof words - 1;
    if (size)
        memcpy(words, data, size);
    words[size] = 0;
    if (store_search(the_store(), words, 8, &hits, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    MUST(hits.len <= 8);
    for (size_t i = 0; i < hits.len; i++)
        MUST(hits.v[i].chat_id == 1 && hits.v[i].title && hits.v[i].snippet);
    hit_list_release(&hits);
    return 0;
}
