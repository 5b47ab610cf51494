#include <sqlite3.h>

// What Swift cannot call: functions with variable arguments, and a macro that casts a number to a
// function.

/// Bind a copy of some text.
static inline int lockstep_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
  return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}

/// Bind a copy of some bytes.
static inline int lockstep_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

/// Refuse what a hostile file could make of SQLite: functions in its schema, writes to it.
static inline int lockstep_defend(sqlite3 *connection) {
  int code = sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
  if (code != SQLITE_OK) return code;
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
}

/// Leave the write-ahead log as it is when the connection closes.
static inline int lockstep_keep_log_on_close(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
