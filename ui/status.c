/* status.c - what the engine does, in one line. Fields are texts with a rank;
 * fitting drops the field of the lowest rank until the rest fits. */
#include "ui/status.h"

#include "base/sanitize.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

enum field_id {
    FIELD_MODEL,
    FIELD_DEVICE,
    FIELD_NOTE, /* on the left */
    FIELD_PHASE,
    FIELD_LEFT,
    FIELD_CONTEXT,
    FIELD_FIRST,
    FIELD_DECODE, /* on the right */
    FIELD_PREFILL,
    FIELD_GRAPH,
    FIELD_KEPT,
    FIELD_MEMORY,
    FIELD_COUNT,
};

/* Higher stays longer. */
static const int ranks[FIELD_COUNT] = {
    [FIELD_PHASE] = 12, [FIELD_LEFT] = 11,  [FIELD_DECODE] = 10, [FIELD_CONTEXT] = 9,
    [FIELD_NOTE] = 8,   [FIELD_MODEL] = 7,  [FIELD_FIRST] = 6,   [FIELD_PREFILL] = 5,
    [FIELD_GRAPH] = 4,  [FIELD_DEVICE] = 3, [FIELD_KEPT] = 2,    [FIELD_MEMORY] = 1,
};

struct fields {
    struct buf text[FIELD_COUNT]; /* empty: not shown */
};

void status_number(struct buf *out, uint64_t v)
{
    if (v >= 1000) {
        status_number(out, v / 1000);
        buf_printf(out, ",%03" PRIu64, v % 1000);
    } else {
        buf_printf(out, "%" PRIu64, v);
    }
}

void status_size(struct buf *out, uint64_t bytes)
{
    static const char *const units[] = { "B", "KB", "MB", "GB" };
    double v = (double)bytes;
    size_t unit = 0;
    while (v >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        v /= 1000;
        unit++;
    }
    buf_printf(out, unit && v < 9.95 ? "%.1f %s" : "%.0f %s", v, units[unit]);
}

void status_time(struct buf *out, double ms)
{
    if (ms < 1000)
        buf_printf(out, "%.0f ms", ms);
    else if (ms < 9950)
        buf_printf(out, "%.1f s", ms / 1000);
    else if (ms < 120000)
        buf_printf(out, "%.0f s", ms / 1000);
    else
        buf_printf(out, "%.0f min", ms / 60000);
}

static uint64_t percent(uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)part * 100.0 / (double)whole) : 0;
}

static void add_name(struct buf *out, const char *s)
{
    if (s)
        sanitize_line(out, s, strlen(s));
}

static void add_phase(struct buf *out, const struct ui_status *s)
{
    switch (s->phase) {
    case PHASE_LOADING:
        buf_str(out, "loading");
        if (s->load_total)
            buf_printf(out, " %" PRIu64 "%%", percent(s->load_done, s->load_total));
        break;
    case PHASE_PREFILL:
        buf_str(out, "reading");
        if (!s->prefill_total)
            break;
        buf_char(out, ' ');
        status_number(out, s->prefill_done);
        buf_char(out, '/');
        status_number(out, s->prefill_total);
        if (s->reused) {
            buf_str(out, ", ");
            status_number(out, s->reused);
            buf_str(out, " reused");
        }
        break;
    case PHASE_DECODE:
        buf_str(out, "writing ");
        status_number(out, s->generated);
        break;
    case PHASE_ERROR:
        buf_str(out, "error");
        break;
    default:
        buf_str(out, "ready");
        break;
    }
}

static void add_context(struct buf *out, const struct ui_status *s)
{
    uint64_t used = percent(s->ctx_used, s->ctx_tokens);
    if (s->ctx_tokens == 0)
        return;
    status_number(out, s->ctx_used);
    buf_char(out, '/');
    status_number(out, s->ctx_tokens);
    buf_printf(out, " (%" PRIu64 "%%)%s", used, used >= 80 ? "!" : "");
}

static void add_first(struct buf *out, double ms)
{
    if (ms <= 0)
        return;
    buf_str(out, "first ");
    status_time(out, ms);
}

/* How much of a known amount of work is done. */
static void add_bar(struct buf *out, uint64_t done, uint64_t all)
{
    enum { COLS = 12 };
    if (!all)
        return;
    uint64_t eighths = (uint64_t)((double)done / (double)all * COLS * 8);
    for (int i = 0; i < COLS; i++) {
        uint64_t have = eighths > 8 * (uint64_t)i ? eighths - 8 * (uint64_t)i : 0;
        char block[] = "\xE2\x96\x91"; /* a shade */
        if (have)
            block[2] = (char)(0x90 - (have < 8 ? have : 8));
        buf_str(out, block);
    }
}

/* What is left to read, if that takes long enough to be of interest. */
static void add_left(struct buf *out, const struct ui_status *s)
{
    double tokens = (double)s->prefill_total - s->prefill_done;
    if (s->phase != PHASE_PREFILL || s->prefill_tps <= 0 || tokens < s->prefill_tps)
        return;
    status_time(out, tokens / s->prefill_tps * 1000);
    buf_str(out, " left");
}

/* Blocks of eighths, the highest for the fastest. */
static void add_graph(struct buf *out, const float *rates, size_t n)
{
    enum { COLS = 12 };
    float most = 0;
    size_t from = n > COLS ? n - COLS : 0;
    for (size_t i = from; i < n; i++)
        most = rates[i] > most ? rates[i] : most;
    for (size_t i = from; i < n && most > 0; i++) {
        int eighths = (int)(rates[i] / most * 8 + 0.5f);
        char block[] = "\xE2\x96\x80";
        block[2] = (char)(0x80 + (eighths < 1 ? 1 : eighths));
        buf_str(out, block);
    }
}

static void add_memory(struct buf *out, const char *what, uint64_t bytes)
{
    if (!bytes)
        return;
    buf_str(out, what);
    status_size(out, bytes);
}

static void add_rate(struct buf *out, const char *what, double tps)
{
    if (tps > 0)
        buf_printf(out, tps < 100 ? "%s%.1f tok/s" : "%s%.0f tok/s", what, tps);
}

static void fill(struct fields *f, const struct ui_status *s)
{
    add_name(&f->text[FIELD_MODEL], s->model);
    add_name(&f->text[FIELD_DEVICE], s->device);
    add_name(&f->text[FIELD_NOTE], s->note);
    add_phase(&f->text[FIELD_PHASE], s);
    add_context(&f->text[FIELD_CONTEXT], s);
    add_first(&f->text[FIELD_FIRST], s->ttft_ms);
    add_rate(&f->text[FIELD_DECODE], "", s->decode_tps);
    add_rate(&f->text[FIELD_PREFILL], "read ", s->prefill_tps);
    add_left(&f->text[FIELD_LEFT], s);
    if (s->phase == PHASE_PREFILL)
        add_bar(&f->text[FIELD_GRAPH], s->prefill_done, s->prefill_total);
    else if (s->phase == PHASE_LOADING)
        add_bar(&f->text[FIELD_GRAPH], s->load_done, s->load_total);
    else
        add_graph(&f->text[FIELD_GRAPH], s->rates, s->n_rates);
    add_memory(&f->text[FIELD_KEPT], "snapshots ", s->snapshot_bytes);
    add_memory(&f->text[FIELD_MEMORY], "device ", s->device_bytes);
}

static size_t columns(const struct buf *b)
{
    return utf8_width(buf_cstr(b), b->len);
}

static size_t total(const struct fields *f)
{
    size_t cols = 0;
    for (int i = 0; i < FIELD_COUNT; i++)
        if (f->text[i].len)
            cols += columns(&f->text[i]) + (cols ? 2 : 0);
    return cols;
}

static int lowest(const struct fields *f)
{
    int found = -1;
    for (int i = 0; i < FIELD_COUNT; i++)
        if (f->text[i].len && (found < 0 || ranks[i] < ranks[found]))
            found = i;
    return found;
}

/* Cuts text to at most cols columns, with an ellipsis where that has room. */
static void shorten(struct buf *b, size_t cols)
{
    size_t at = 0, used = 0, mark = cols >= 8 ? 1 : 0;
    while (at < b->len) {
        size_t end = utf8_grapheme_next(b->v, b->len, at);
        size_t w = (size_t)utf8_grapheme_width(b->v + at, end - at);
        if (used + w > cols - mark)
            break;
        used += w;
        at = end;
    }
    buf_truncate(b, at);
    if (mark)
        buf_str(b, "\xE2\x80\xA6");
}

/* Drops or shortens until everything fits. A note is cut before it is lost. */
static void fit(struct fields *f, size_t width)
{
    for (size_t cols; (cols = total(f)) > width;) {
        int i = lowest(f);
        struct buf *b = &f->text[i];
        size_t over = cols - width, have = columns(b);
        bool name = i == FIELD_NOTE || i == FIELD_MODEL || i == FIELD_DEVICE;
        bool last = have == cols;
        if (last || (name && have >= over + 8))
            shorten(b, have - over);
        else
            buf_truncate(b, 0);
        if (last)
            return;
    }
}

static void join(struct buf *out, const struct fields *f, int from, int to)
{
    bool first = true;
    for (int i = from; i < to; i++) {
        if (f->text[i].len == 0)
            continue;
        if (!first)
            buf_str(out, "  ");
        buf_add(out, f->text[i].v, f->text[i].len);
        first = false;
    }
}

void status_format(struct buf *out, const struct ui_status *s, int width)
{
    struct fields f = { 0 };
    struct buf left = BUF_INIT, right = BUF_INIT;
    size_t room = width > 0 ? (size_t)width : 0;
    fill(&f, s);
    fit(&f, room);
    join(&left, &f, FIELD_MODEL, FIELD_PHASE);
    join(&right, &f, FIELD_PHASE, FIELD_COUNT);
    size_t used = columns(&left) + columns(&right);
    buf_add(out, buf_cstr(&left), left.len);
    while (left.len + right.len > 0 && used++ < room)
        buf_char(out, ' ');
    buf_add(out, buf_cstr(&right), right.len);
    for (int i = 0; i < FIELD_COUNT; i++)
        buf_release(&f.text[i]);
    buf_release(&left);
    buf_release(&right);
}
