/* record.c - names and release of the shared records. */
#include "base/record.h"

#include <stdlib.h>
#include <string.h>

#define NAME_ROW(name, text) text,
static const char *const role_names[] = { ROLES(NAME_ROW) };
static const char *const state_names[] = { STATES(NAME_ROW) };

static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; name && i < n; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

const char *role_name(enum role r)
{
    return r < ROLE_COUNT ? role_names[r] : "unknown";
}

const char *state_name(enum message_state s)
{
    return s < STATE_COUNT ? state_names[s] : "unknown";
}

int role_from_name(const char *name)
{
    return find(role_names, ROLE_COUNT, name);
}

int state_from_name(const char *name)
{
    return find(state_names, STATE_COUNT, name);
}

void message_release(struct message *m)
{
    free(m->text);
    free(m->thinking);
    free(m->ids);
    free(m->ids_model);
    free(m->model);
    *m = (struct message){ 0 };
}

void message_list_release(struct message_list *l)
{
    for (size_t i = 0; i < l->len; i++)
        message_release(&l->v[i]);
    free(l->v);
    *l = (struct message_list){ 0 };
}

void chat_release(struct chat *c)
{
    free(c->title);
    free(c->model);
    free(c->model_path);
    free(c->settings);
    free(c->draft);
    *c = (struct chat){ 0 };
}

void chat_list_release(struct chat_list *l)
{
    for (size_t i = 0; i < l->len; i++)
        chat_release(&l->v[i]);
    free(l->v);
    *l = (struct chat_list){ 0 };
}
