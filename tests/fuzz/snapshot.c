/* snapshot.c - kept timelines: the file of rows, and a record of a state. With
 * the first byte odd, sums are put right first, so that what they protect is
 * reached as well. */
#include "tests/fuzz/fuzz.h"

#include "engine/snapshot_file.h"

const unsigned fuzz_rounds = 3000;
const size_t fuzz_max_bytes = 1 << 14;

/* A small model's; the corpus was written for it. */
static const struct snapshot_identity want = {
    .version = SNAPSHOT_VERSION,
    .endian = SNAPSHOT_ENDIAN,
    .n_recurrent = 2,
    .n_attention = 1,
    .row_bytes = 8,
    .history_bytes = 24,
    .matrix_bytes = 64,
    .weights = 0x1122334455667788,
    .tokenizer = 0x99aabbccddeeff00,
};

static uint64_t ids_end(const struct snapshot_header *h, size_t size)
{
    if (h->to <= h->from || h->to - h->from > size / sizeof(int32_t))
        return 0;
    return sizeof *h + (h->to - h->from) * sizeof(int32_t);
}

/* Every record gets the identity and the sum that it should have. */
static void repair(char *v, size_t size)
{
    size_t at = 0;
    struct snapshot_header h;
    while (size - at >= sizeof h) {
        memcpy(&h, v + at, sizeof h);
        h.id = want;
        uint64_t end = ids_end(&h, size - at);
        if (!end || end > size - at)
            return;
        int32_t ids[1 << 12];
        size_t n = (size_t)(h.to - h.from);
        MUST(n <= sizeof ids / sizeof *ids);
        memcpy(ids, v + at + sizeof h, n * sizeof *ids);
        h.checksum = snapshot_checksum(&h, ids, n);
        memcpy(v + at, &h, sizeof h);
        if (h.payload_bytes > size - at - end || size - at - end - h.payload_bytes < 8)
            return;
        at += (size_t)(end + h.payload_bytes + 8);
    }
}

static void read_rows(const char *path, size_t size)
{
    struct kv_file f;
    struct err err = { "" };
    size_t covered;
    int32_t ids[64];
    int rc = kv_file_open(&f, path, false, &want, &err);
    if (rc) {
        MUST(err.text[0] && one_line(err.text) && f.fd < 0);
        return;
    }
    MUST(f.bytes <= size);
    for (size_t i = 0; i < f.n; i++) {
        const struct kv_segment *g = &f.v[i];
        MUST(g->from < g->to && g->parent <= i);
        MUST(g->ids + (g->to - g->from) <= f.ids.len);
        MUST(g->payload + (g->to - g->from) * 2 * want.row_bytes <= f.bytes);
    }
    for (int32_t i = 0; i < 64; i++)
        ids[i] = (size_t)i < f.ids.len ? f.ids.v[i] : i;
    size_t leaf = kv_file_match(&f, ids, 64, &covered);
    MUST(leaf <= f.n && covered <= 64 && (leaf > 0) == (covered > 0));
    kv_file_close(&f);
}

static void read_state(const char *path, size_t size)
{
    struct snapshot_header h;
    struct tokens ids = { 0 };
    struct err err = { "" };
    uint64_t payload = 0;
    FILE *f = fopen(path, "rb");
    MUST(f);
    const struct snapshot_place p = { fileno(f), 0, size, snapshot_magic_state, &want };
    int rc = snapshot_record_read(&p, &h, &ids, &payload, &err);
    if (rc > 0)
        MUST(ids.len == h.to - h.from && payload + h.payload_bytes + 8 <= size);
    if (rc < 0)
        MUST(err.text[0] && one_line(err.text));
    tokens_release(&ids);
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > fuzz_max_bytes)
        return 0;
    char *v = malloc(size);
    MUST(v);
    memcpy(v, data + 1, size - 1);
    if (data[0] & 1)
        repair(v, size - 1);
    read_state(fuzz_file(v, size - 1), size - 1);
    read_rows(fuzz_file(v, size - 1), size - 1);
    free(v);
    return 0;
}
