/* schema.h - the numbered migrations and how a file is brought up to date. */
#ifndef STORAGE_SCHEMA_H
#define STORAGE_SCHEMA_H

#include "base/err.h"
#include "storage/db.h"

/* The embedded storage/schema.sql. */
const char *schema_text(void);
/* How many "-- version N" sections a text has. */
int schema_latest(const char *text);

/* The version of the open file, 0 for an empty one. Refuses files of other
 * programs and versions over latest; writes nothing. */
int schema_check(struct store *st, int latest, int *version, struct err *err);
/* Runs the sections that the file lacks in one transaction, after a copy to
 * PATH.vN.bak if it held version N before. */
int schema_migrate(struct store *st, const char *text, struct err *err);
/* Removes the copies that migrations left, which hold old texts. */
void schema_remove_backups(const struct store *st);

#endif
