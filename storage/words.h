/* words.h - how text is cut into words for the search index. */
#ifndef STORAGE_WORDS_H
#define STORAGE_WORDS_H

#include <sqlite3.h>

/* Makes the tokenizer "tern_words" known to a connection. Returns an SQLite
 * code; SQLITE_ERROR where SQLite was built without FTS5. */
int words_register(sqlite3 *db);

#endif
