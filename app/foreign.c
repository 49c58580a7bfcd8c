/* foreign.c - other programs' conversations to messages. All of it is hostile: each
 * field is checked, fields that are not known do not matter. */
#include "app/foreign.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define THINK_BEGIN "<think>"
#define THINK_END   "</think>"
#define MARK_BEGIN  "<|im_start|>"
#define MARK_END    "<|im_end|>"

void foreign_release(struct foreign *f)
{
    free(f->title);
    free(f->model);
    message_list_release(&f->messages);
    *f = (struct foreign){ 0 };
}

/* ---- messages -------------------------------------------------------------- */

static const struct {
    const char *name;
    enum role role;
} roles[] = {
    { "user", ROLE_USER },           { "human", ROLE_USER },
    { "system", ROLE_SYSTEM },       { "developer", ROLE_SYSTEM },
    { "assistant", ROLE_ASSISTANT }, { "gpt", ROLE_ASSISTANT },
    { "model", ROLE_ASSISTANT },     { "bot", ROLE_ASSISTANT },
    { "chatgpt", ROLE_ASSISTANT },
};

/* -1 for what has no place here. */
static int role_of(const char *name, size_t n)
{
    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (strlen(roles[i].name) == n && !memcmp(roles[i].name, name, n))
            return (int)roles[i].role;
    return -1;
}

static struct message *message_add(struct foreign *f, enum role role)
{
    struct message_list *l = &f->messages;
    l->v = mem_regrow(l->v, l->len + 1, sizeof *l->v);
    l->v[l->len] = (struct message){ .role = role, .siblings = 1 };
    return &l->v[l->len++];
}

/* Text of an answer may begin with its reasoning. */
static void text_set(struct message *m, const char *text, size_t n)
{
    const size_t begin = sizeof THINK_BEGIN - 1;
    const char *end = NULL;
    bool thinks = m->role == ROLE_ASSISTANT && n >= begin &&
                  !memcmp(text, THINK_BEGIN, begin) && !m->thinking;
    if (thinks)
        end = strstr(text, THINK_END); /* text ends in a NUL */
    if (end) {
        const char *inner = text + begin;
        size_t bytes = (size_t)(end - inner);
        while (bytes && strchr("\r\n", *inner)) {
            inner++;
            bytes--;
        }
        while (bytes && strchr("\r\n", inner[bytes - 1]))
            bytes--;
        if (bytes) {
            m->thinking = mem_strndup(inner, bytes);
            m->thinking_bytes = bytes;
        }
        end += sizeof THINK_END - 1;
        n -= (size_t)(end - text);
        text = end;
        while (n && strchr("\r\n", *text)) {
            text++;
            n--;
        }
    }
    m->text = mem_strndup(text, n);
    m->text_bytes = n;
}

/* ---- JSON ------------------------------------------------------------------- */

static const char *get_text(const struct json_doc *d, uint32_t object, const char *key,
                            size_t *n)
{
    return json_get_text(d, json_get(d, object, key), n, NULL);
}

/* A text without NUL bytes, malloced, or NULL. */
static char *copy_text(const struct json_doc *d, uint32_t object, const char *key)
{
    size_t n = 0;
    const char *text = get_text(d, object, key, &n);
    return text && strlen(text) == n ? mem_strndup(text, n) : NULL;
}

/* Seconds or milliseconds since 1970 to milliseconds, 0 for no time. */
static int64_t get_time(const struct json_doc *d, uint32_t object)
{
    static const char *const keys[] = { "create_time", "created_ms", "created",
                                        "created_at", "timestamp" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double v = json_get_number(d, json_get(d, object, keys[i]), 0);
        if (v >= 1e8 && v < 1e11)
            return (int64_t)(v * 1000);
        if (v >= 1e11 && v < 1e14)
            return (int64_t)v;
    }
    return 0;
}

static int part_add(const struct json_doc *d, uint32_t part, struct buf *out,
                    struct err *err)
{
    size_t n = 0;
    const char *type = get_text(d, part, "type", NULL);
    const char *text = json_kind(d, part) == JSON_STRING
                           ? json_get_text(d, part, &n, NULL)
                           : get_text(d, part, "text", &n);
    if (text && strlen(text) != n)
        return err_set(err, "it has no proper text");
    if (out->len && (text || type))
        buf_char(out, '\n');
    if (text)
        buf_add(out, text, n);
    else if (type)
        buf_printf(out, "[%s]", type);
    return 0;
}

/* A string, a list of parts, or an object with parts. */
static int content_read(const struct json_doc *d, uint32_t v, struct buf *out,
                        struct err *err)
{
    enum json_kind kind = v ? json_kind(d, v) : JSON_NULL;
    if (kind == JSON_OBJECT && json_get(d, v, "parts"))
        return content_read(d, json_get(d, v, "parts"), out, err);
    if (kind == JSON_STRING || kind == JSON_OBJECT)
        return part_add(d, v, out, err);
    for (uint32_t p = kind == JSON_ARRAY ? json_first(d, v) : 0; p; p = json_next(d, p))
        if (part_add(d, p, out, err) < 0)
            return -1;
    return 0;
}

static char *thinking_of(const struct json_doc *d, uint32_t v)
{
    static const char *const keys[] = { "reasoning_content", "reasoning", "thinking" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *text = copy_text(d, v, keys[i]);
        if (text && *text)
            return text;
        free(text);
    }
    return NULL;
}

/* {"role", "content"}, {"from", "value"} or {"author": {"role"}, "content"}. */
static int message_read(struct foreign *f, const struct json_doc *d, uint32_t v,
                        struct err *err)
{
    size_t n = 0;
    uint32_t author = json_get(d, v, "author");
    const char *name = get_text(d, v, "role", &n);
    struct buf text = BUF_INIT;
    if (!name)
        name = author ? get_text(d, author, "role", &n) : get_text(d, v, "from", &n);
    if (!name)
        return err_set(err, "it has no role");
    uint32_t content = json_get(d, v, "content");
    int rc = content_read(d, content ? content : json_get(d, v, "value"), &text, err);
    int role = role_of(name, n);
    if (rc == 0 && role < 0) {
        f->skipped++;
    } else if (rc == 0) {
        struct message *m = message_add(f, (enum role)role);
        m->created_ms = get_time(d, v);
        if (role == ROLE_ASSISTANT && (m->thinking = thinking_of(d, v)))
            m->thinking_bytes = strlen(m->thinking);
        text_set(m, buf_cstr(&text), text.len);
    }
    buf_release(&text);
    return rc;
}

static bool is_message(const struct json_doc *d, uint32_t v)
{
    return json_kind(d, v) == JSON_OBJECT &&
           ((json_get(d, v, "role") && json_get(d, v, "content")) ||
            (json_get(d, v, "from") && json_get(d, v, "value")) ||
            (json_get(d, v, "role") && json_get(d, v, "tool_calls")));
}

static bool is_message_list(const struct json_doc *d, uint32_t v)
{
    return v && json_kind(d, v) == JSON_ARRAY && is_message(d, json_first(d, v));
}

/* The list of messages in a conversation, 0 for none. */
static uint32_t list_of(const struct json_doc *d, uint32_t v)
{
    static const char *const keys[] = { "messages", "conversations", "conversation",
                                        "history" };
    if (is_message_list(d, v))
        return v;
    if (json_kind(d, v) != JSON_OBJECT)
        return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_message_list(d, json_get(d, v, keys[i])))
            return json_get(d, v, keys[i]);
    return 0;
}

static uint32_t mapping_of(const struct json_doc *d, uint32_t v)
{
    uint32_t m = json_kind(d, v) == JSON_OBJECT ? json_get(d, v, "mapping") : 0;
    return m && json_kind(d, m) == JSON_OBJECT ? m : 0;
}

bool foreign_is(const struct json_doc *d, uint32_t v)
{
    return v && (list_of(d, v) || mapping_of(d, v));
}

/* The branch that ends at the current node, from the first message on. */
static int mapping_read(struct foreign *f, const struct json_doc *d, uint32_t v,
                        struct err *err)
{
    uint32_t mapping = mapping_of(d, v);
    size_t most = json_count(d, mapping), n = 0;
    uint32_t *nodes = mem_array(most, sizeof *nodes);
    const char *id = get_text(d, v, "current_node", NULL);
    int rc = 0;
    while (id && n < most) {
        uint32_t node = json_get(d, mapping, id);
        if (!node)
            break;
        nodes[n++] = json_get(d, node, "message");
        id = get_text(d, node, "parent", NULL);
    }
    while (rc == 0 && n-- > 0)
        if (nodes[n] && json_kind(d, nodes[n]) == JSON_OBJECT)
            rc = message_read(f, d, nodes[n], err);
    free(nodes);
    /* Hidden messages without a text are no part of what was said. */
    for (size_t i = 0; i < f->messages.len;) {
        struct message *m = &f->messages.v[i];
        if (m->text_bytes || m->thinking_bytes) {
            i++;
            continue;
        }
        message_release(m);
        memmove(m, m + 1, (f->messages.len - i - 1) * sizeof *m);
        f->messages.len--;
    }
    return rc;
}

static int list_read(struct foreign *f, const struct json_doc *d, uint32_t list,
                     struct err *err)
{
    size_t i = 1;
    for (uint32_t m = json_first(d, list); m; m = json_next(d, m), i++)
        if (message_read(f, d, m, err) < 0)
            return err_prefix(err, "message %zu", i);
    return 0;
}

int foreign_read(struct foreign *f, const struct json_doc *d, uint32_t v, struct err *err)
{
    uint32_t list = list_of(d, v);
    *f = (struct foreign){ 0 };
    if (json_kind(d, v) == JSON_OBJECT) {
        f->title = copy_text(d, v, "title");
        f->model = copy_text(d, v, "model");
        f->created_ms = get_time(d, v);
        char *system = copy_text(d, v, "system");
        if (system && *system)
            text_set(message_add(f, ROLE_SYSTEM), system, strlen(system));
        free(system);
    }
    if (list ? list_read(f, d, list, err) < 0 : mapping_read(f, d, v, err) < 0)
        return -1;
    return f->messages.len ? 0 : err_set(err, "there is no message in it");
}

/* ---- marked text ------------------------------------------------------------- */

bool foreign_is_text(const char *text, size_t n)
{
    while (n && strchr(" \t\r\n", *text) && *text) {
        text++;
        n--;
    }
    return n >= sizeof MARK_BEGIN - 1 && !memcmp(text, MARK_BEGIN, sizeof MARK_BEGIN - 1);
}

/* One turn after its mark; returns where the next one may begin. */
static const char *turn_read(struct foreign *f, const char *s)
{
    size_t name = strcspn(s, "\n");
    const char *text = s + name + (s[name] == '\n');
    const char *end = strstr(text, MARK_END), *next = strstr(text, MARK_BEGIN);
    if (!end || (next && next < end))
        end = next;
    size_t n = end ? (size_t)(end - text) : strlen(text);
    while (name && strchr(" \r", s[name - 1]))
        name--;
    int role = role_of(s, name);
    bool unfinished = !end && !n && role == ROLE_ASSISTANT; /* an open prompt */
    if (role < 0)
        f->skipped++;
    else if (!unfinished)
        text_set(message_add(f, (enum role)role), text, n);
    return text + n;
}

int foreign_read_text(struct foreign *f, const char *text, size_t n, struct err *err)
{
    *f = (struct foreign){ 0 };
    if (strlen(text) != n || !utf8_valid(text, n))
        return err_set(err, "this is no text in UTF-8");
    while ((text = strstr(text, MARK_BEGIN)))
        text = turn_read(f, text + sizeof MARK_BEGIN - 1);
    return f->messages.len ? 0 : err_set(err, "there is no message in it");
}
