/* render.c - md4c's callbacks to styled paragraphs.
 *
 * Containers (quotes, list items) are a stack of prefixes; each paragraph gets
 * the prefixes of all containers it is in. Line breaks inside a paragraph are
 * kept, as a chat shows them. Tables are collected in table.c. */
#include "ui/render.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/highlight.h"
#include "ui/table.h"
#include "ui/theme.h"

#include <md4c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  16 /* containers beyond this share the last prefix */
#define PREFIX_MAX 256

struct container {
    char lead[16]; /* before the first line: "12. " */
    bool used;     /* the lead was drawn; spaces stand for it now */
    bool quote;    /* the lead is drawn before every line */
};

struct builder {
    struct text *out; /* where paragraphs go: the target or the table */
    struct text *target;
    struct table table;
    uint16_t base;
    int bold, italic, strike, code, link, heading;
    struct container stack[DEPTH_MAX];
    unsigned numbers[DEPTH_MAX]; /* next number of each open list, 0: bullets */
    int depth, lists;
    int ordinal; /* of the first item, 0: as written */
    bool open;   /* a paragraph takes text */
    bool code_block;
    struct highlight code_state;
    struct buf line;      /* of the code block, not ended yet */
    bool blank;           /* an empty line is due before the next block */
    size_t link_start[4]; /* where the text of open links began */
};

static struct container *top(struct builder *b)
{
    return &b->stack[(b->depth < DEPTH_MAX ? b->depth : DEPTH_MAX) - 1];
}

static void add_prefix(char *out, const char *s)
{
    size_t have = strlen(out), n = strlen(s);
    if (have + n < PREFIX_MAX)
        memcpy(out + have, s, n + 1);
}

static void add_spaces(char *out, size_t n)
{
    while (n-- > 0)
        add_prefix(out, " ");
}

static void prefixes(struct builder *b, char *lead, char *rest)
{
    int depth = b->depth < DEPTH_MAX ? b->depth : DEPTH_MAX;
    for (int i = 0; i < depth; i++) {
        struct container *c = &b->stack[i];
        size_t width = utf8_width(c->lead, strlen(c->lead));
        if (c->quote || !c->used)
            add_prefix(lead, c->lead);
        else
            add_spaces(lead, width);
        if (c->quote)
            add_prefix(rest, c->lead);
        else
            add_spaces(rest, width);
        c->used = true;
    }
}

static void start_para(struct builder *b, enum para_kind kind)
{
    char lead[PREFIX_MAX] = "", rest[PREFIX_MAX] = "";
    prefixes(b, lead, rest);
    text_para(b->out, kind, lead, rest);
    b->open = true;
}

static uint16_t style_now(const struct builder *b)
{
    uint16_t style = b->base;
    if (b->code)
        style = STYLE_CODE;
    else if (b->link)
        style = STYLE_LINK;
    else if (b->heading)
        style = STYLE_HEADING;
    if (b->bold)
        style |= STYLE_BOLD;
    if (b->italic)
        style |= STYLE_ITALIC;
    if (b->strike)
        style |= STYLE_STRIKE;
    return style;
}

static void add_text(struct builder *b, const char *s, size_t n)
{
    if (!b->open)
        start_para(b, PARA_FLOW);
    text_add(b->out, s, n, style_now(b));
}

static void code_line(struct builder *b)
{
    start_para(b, PARA_CODE);
    highlight_line(&b->code_state, b->out, buf_cstr(&b->line), b->line.len);
    buf_truncate(&b->line, 0);
    b->open = false;
}

/* Code blocks: every newline ends a paragraph, so that empty lines stay. */
static void add_code(struct builder *b, const char *s, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(s, '\n', n);
        size_t part = newline ? (size_t)(newline - s) : n;
        buf_add(&b->line, s, part);
        if (newline) {
            code_line(b);
            part++;
        }
        s += part;
        n -= part;
    }
}

static void add_entity(struct builder *b, const char *s, size_t n)
{
    static const struct {
        const char *name, *text;
    } names[] = { { "&amp;", "&" },   { "&lt;", "<" },          { "&gt;", ">" },
                  { "&quot;", "\"" }, { "&nbsp;", "\xC2\xA0" }, { "&apos;", "'" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (n == strlen(names[i].name) && !memcmp(s, names[i].name, n)) {
            add_text(b, names[i].text, strlen(names[i].text));
            return;
        }
    }
    if (n < 4 || n > 12 || s[1] != '#') {
        add_text(b, s, n);
        return;
    }
    char digits[12] = "", utf8[4];
    bool hex = s[2] == 'x' || s[2] == 'X';
    memcpy(digits, s + (hex ? 3 : 2), n - (hex ? 4 : 3));
    size_t len = utf8_encode((uint32_t)strtoul(digits, NULL, hex ? 16 : 10), utf8);
    struct buf safe = BUF_INIT; /* "&#27;" spells what was sanitised before */
    sanitize_line(&safe, utf8, len);
    add_text(b, safe.v, safe.len);
    buf_release(&safe);
}

static void line_break(struct builder *b)
{
    if (b->out != b->target)
        add_text(b, " ", 1);
    else
        b->open = false;
}

/* An empty line between two blocks of the same container. */
static void separate(struct builder *b)
{
    if (b->blank && (b->depth == 0 || top(b)->used || top(b)->quote)) {
        start_para(b, PARA_FLOW);
        b->open = false;
    }
    b->blank = false;
}

static void enter_item(struct builder *b, const MD_BLOCK_LI_DETAIL *d)
{
    struct container c = { .used = false };
    int list = b->lists < DEPTH_MAX ? b->lists - 1 : DEPTH_MAX - 1;
    const char *task = !d->is_task ? "" : d->task_mark == ' ' ? "[ ] " : "[x] ";
    if (b->numbers[list])
        snprintf(c.lead, sizeof c.lead, "%u. %s", (b->numbers[list]++ - 1) % 1000000000,
                 task);
    else
        snprintf(c.lead, sizeof c.lead, "\xE2\x80\xA2 %s", task);
    b->depth++;
    *top(b) = c;
    b->open = b->blank = false;
}

static void enter_list(struct builder *b, unsigned start, bool ordered)
{
    if (ordered && b->lists == 0 && b->ordinal)
        start = (unsigned)b->ordinal;
    b->lists++;
    if (b->lists <= DEPTH_MAX) /* kept one too high, so that 0 means bullets */
        b->numbers[b->lists - 1] = ordered ? start + 1 : 0;
    b->open = b->blank = false;
}

static void enter_code(struct builder *b, const MD_BLOCK_CODE_DETAIL *d)
{
    char lead[PREFIX_MAX] = "", rest[PREFIX_MAX] = "";
    separate(b);
    prefixes(b, lead, rest);
    render_code_edge(b->out, d->info.text ? d->info.text : "", d->info.size, lead);
    highlight_begin(&b->code_state, d->info.text ? d->info.text : "", d->info.size);
    b->code_block = true;
    b->open = false;
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *user)
{
    struct builder *b = user;
    switch (type) {
    case MD_BLOCK_QUOTE:
        separate(b);
        b->depth++;
        *top(b) = (struct container){ .lead = "\xE2\x94\x82 ", .quote = true };
        break;
    case MD_BLOCK_UL:
        enter_list(b, 0, false);
        break;
    case MD_BLOCK_OL:
        enter_list(b, ((MD_BLOCK_OL_DETAIL *)detail)->start, true);
        break;
    case MD_BLOCK_LI:
        enter_item(b, detail);
        break;
    case MD_BLOCK_HR:
        separate(b);
        start_para(b, PARA_RULE);
        b->open = false;
        break;
    case MD_BLOCK_H:
        separate(b);
        b->heading++;
        break;
    case MD_BLOCK_CODE:
        enter_code(b, detail);
        break;
    case MD_BLOCK_P:
        separate(b);
        b->open = false;
        break;
    case MD_BLOCK_TABLE:
        separate(b);
        table_begin(&b->table, ((MD_BLOCK_TABLE_DETAIL *)detail)->col_count);
        b->out = &b->table.cells;
        break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD:
        table_cell(&b->table, (int)((MD_BLOCK_TD_DETAIL *)detail)->align);
        b->bold += type == MD_BLOCK_TH;
        b->open = true;
        break;
    default:
        break;
    }
    return 0;
}

static void leave_table(struct builder *b)
{
    char lead[PREFIX_MAX] = "", rest[PREFIX_MAX] = "";
    prefixes(b, lead, rest);
    b->out = b->target;
    table_end(&b->table, b->out, lead, rest);
    b->open = false;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *user)
{
    struct builder *b = user;
    (void)detail;
    switch (type) {
    case MD_BLOCK_QUOTE:
    case MD_BLOCK_LI:
        if (type == MD_BLOCK_LI && !top(b)->used) /* an empty item still shows */
            start_para(b, PARA_FLOW);
        b->depth--;
        b->blank = type == MD_BLOCK_QUOTE;
        break;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL:
        b->lists--;
        b->blank = true;
        break;
    case MD_BLOCK_H:
        b->heading--;
        b->blank = true;
        break;
    case MD_BLOCK_CODE: {
        char lead[PREFIX_MAX] = "", rest[PREFIX_MAX] = "";
        if (b->line.len > 0)
            code_line(b);
        prefixes(b, lead, rest);
        render_code_edge(b->out, "", 0, lead);
        b->code_block = false;
        b->blank = true;
        break;
    }
    case MD_BLOCK_P:
        b->blank = true;
        break;
    case MD_BLOCK_TABLE:
        leave_table(b);
        b->blank = true;
        break;
    case MD_BLOCK_TH:
        b->bold--;
        return 0; /* the next cell of the row goes on */
    case MD_BLOCK_TD:
        return 0;
    default:
        break;
    }
    b->open = false;
    return 0;
}

static int enter_span(MD_SPANTYPE type, void *detail, void *user)
{
    struct builder *b = user;
    (void)detail;
    switch (type) {
    case MD_SPAN_EM:
        b->italic++;
        break;
    case MD_SPAN_STRONG:
        b->bold++;
        break;
    case MD_SPAN_DEL:
        b->strike++;
        break;
    case MD_SPAN_CODE:
        b->code++;
        break;
    case MD_SPAN_A:
    case MD_SPAN_IMG:
        if (!b->open)
            start_para(b, PARA_FLOW);
        b->link_start[b->link & 3] = b->out->bytes.len;
        b->link++;
        break;
    default:
        break;
    }
    return 0;
}

/* The address follows the text in parentheses, unless it is the text. */
static void leave_link(struct builder *b, const MD_ATTRIBUTE *href)
{
    size_t start = b->link_start[(b->link - 1) & 3];
    size_t n = b->out->bytes.len - start;
    bool same =
        n == href->size && n > 0 && !memcmp(b->out->bytes.v + start, href->text, n);
    bool mail = href->size == n + 7 && n > 0 && !memcmp(href->text, "mailto:", 7);
    if (!same && !mail && href->size > 0) {
        add_text(b, n > 0 ? " (" : "(", n > 0 ? 2 : 1);
        struct buf line = BUF_INIT;
        sanitize_line(&line, href->text, href->size);
        add_text(b, line.v, line.len);
        buf_release(&line);
        add_text(b, ")", 1);
    }
    b->link--;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user)
{
    struct builder *b = user;
    switch (type) {
    case MD_SPAN_EM:
        b->italic--;
        break;
    case MD_SPAN_STRONG:
        b->bold--;
        break;
    case MD_SPAN_DEL:
        b->strike--;
        break;
    case MD_SPAN_CODE:
        b->code--;
        break;
    case MD_SPAN_A:
        leave_link(b, &((MD_SPAN_A_DETAIL *)detail)->href);
        break;
    case MD_SPAN_IMG:
        leave_link(b, &((MD_SPAN_IMG_DETAIL *)detail)->src);
        break;
    default:
        break;
    }
    return 0;
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE n, void *user)
{
    struct builder *b = user;
    switch (type) {
    case MD_TEXT_NULLCHAR:
        add_text(b, "\xEF\xBF\xBD", 3);
        break;
    case MD_TEXT_BR:
    case MD_TEXT_SOFTBR:
        line_break(b);
        break;
    case MD_TEXT_ENTITY:
        add_entity(b, s, n);
        break;
    case MD_TEXT_CODE:
        if (b->code_block) {
            add_code(b, s, n);
            break;
        }
        add_text(b, s, n);
        break;
    default:
        add_text(b, s, n);
        break;
    }
    return 0;
}

void render_code_edge(struct text *out, const char *info, size_t n, const char *prefix)
{
    text_para(out, PARA_FLOW, prefix, prefix);
    text_str(out, "\xE2\x94\x80\xE2\x94\x80", STYLE_RULE);
    if (n > 0) {
        text_str(out, " ", STYLE_RULE);
        text_add(out, info, n, STYLE_RULE);
    }
}

void render_markdown(struct text *out, const char *s, size_t n, uint16_t style,
                     int ordinal)
{
    struct builder b = { .out = out, .target = out, .base = style, .ordinal = ordinal };
    MD_PARSER parser = {
        .flags =
            MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_NOHTML,
        .enter_block = enter_block,
        .leave_block = leave_block,
        .enter_span = enter_span,
        .leave_span = leave_span,
        .text = on_text,
    };
    size_t paras = out->n_paras;
    int rc = md_parse(s, (MD_SIZE)n, &parser, &b);
    table_release(&b.table);
    buf_release(&b.line);
    if (rc != 0 && out->n_paras == paras) { /* md4c gave up: show the source */
        text_para(out, PARA_FLOW, "", "");
        text_add(out, s, n > 0 && s[n - 1] == '\n' ? n - 1 : n, style);
    }
}
