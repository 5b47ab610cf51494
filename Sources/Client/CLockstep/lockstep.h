/* lockstep.h: exact, live copies of the state of a Lockstep daemon, for C.
 *
 * One process, the daemon, owns a state. This library holds copies of parts of it (mirrors), keeps
 * them equal to the original, and sends actions, which are the only way to change it:
 *
 *     lockstep_connection *connection;
 *     uint64_t lamp;
 *     int error = lockstep_connect(NULL, &connection);
 *     if (error == 0) error = lockstep_subscribe(connection, "/lamp", 0, &lamp);
 *     while (error == 0 && lockstep_wait(connection, -1) > 0) {
 *       lockstep_event event;
 *       while (lockstep_next_event(connection, &event) > 0) {
 *         int64_t level;
 *         if (event.kind == LOCKSTEP_EVENT_CHANGED
 *             && lockstep_integer(lockstep_get(connection, lamp, "/level"), &level) == 0)
 *           printf("level %lld\n", (long long)level);
 *       }
 *     }
 *     lockstep_free(connection);
 *
 * Link with `pkg-config --cflags --libs lockstep`. Manual page: lockstep(3).
 *
 *
 * RULES THAT HOLD FOR EVERY FUNCTION
 *
 * Loop. The library starts no thread, has no loop, calls no function of yours, and blocks only in
 * lockstep_wait. Nothing is read from the daemon and nothing in a mirror changes except within
 * lockstep_dispatch (which lockstep_wait calls), lockstep_unsubscribe, lockstep_close and
 * lockstep_free. Below, "dispatch" means these four.
 *
 * Threads. At most one thread at a time may use a connection, its values and its iterators; to share
 * a connection, hold a lock of your own around each use. Different connections are independent. The
 * library changes no signal handler and causes no SIGPIPE. After fork, only one of the two processes
 * may use a connection.
 *
 * Results. A function that returns int returns 0 or more on success, and one of `enum lockstep_error`,
 * all negative, on failure; then it has changed nothing, and nothing is written through a pointer
 * unless its description says so. An output pointer may be NULL if the result is not of interest.
 *
 * Ownership. The caller owns what it passes in: the library copies what it keeps before it returns.
 * The library owns what it hands out, except for the buffers of lockstep_export_json and
 * lockstep_export_cbor, which are released by lockstep_release, and the connection, which is released
 * by lockstep_free.
 *
 * Lifetime. Values, iterators, and the texts and bytes that they give are valid until the next
 * dispatch of their connection. Texts and places of an event are valid until the next
 * lockstep_next_event or dispatch.
 *
 * Text. Strings passed in are UTF-8 and end with a zero byte. Texts handed out are UTF-8; where a
 * length comes with a text, the text may contain zero bytes and need not end with one, unless its
 * description says that it does.
 *
 * Mistakes. NULL, bad UTF-8, bad pointers of paths, numbers that name nothing, and values that are no
 * longer valid give errors. A connection that was freed gives LOCKSTEP_ERROR_HANDLE, until its memory
 * serves another connection. Any other pointer that is not valid is undefined behaviour, as in C.
 */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version and errors ------------------------------------------------------------------------ */

/* The version of this interface. It rises when programs must be compiled anew; the library's file
 * name, liblockstep.so.1, has the same number. */
#define LOCKSTEP_ABI_VERSION 1

/* The LOCKSTEP_ABI_VERSION of the library that is loaded. Any thread. */
int lockstep_abi_version(void);

enum lockstep_error {
  LOCKSTEP_ERROR_ARGUMENT = -1,      /* NULL or an unknown flag where it is not allowed */
  LOCKSTEP_ERROR_HANDLE = -2,        /* the connection was freed */
  LOCKSTEP_ERROR_STALE = -3,         /* the value is older than the last dispatch */
  LOCKSTEP_ERROR_UTF8 = -4,          /* text that is not UTF-8 */
  LOCKSTEP_ERROR_PATH = -5,          /* not a JSON Pointer: "" or "/a/b", with ~0 for ~ and ~1 for / */
  LOCKSTEP_ERROR_ABSENT = -6,        /* there is no value at this place */
  LOCKSTEP_ERROR_KIND = -7,          /* the value is of another kind */
  LOCKSTEP_ERROR_RANGE = -8,         /* the number does not fit the type that was asked for */
  LOCKSTEP_ERROR_JSON = -9,          /* not JSON; lockstep_last_message says where */
  LOCKSTEP_ERROR_CBOR = -10,         /* not one well-formed item of CBOR */
  LOCKSTEP_ERROR_ACTION = -11,       /* no action of the daemon; lockstep_last_message says why */
  LOCKSTEP_ERROR_NOT_CONNECTED = -12,/* needs a daemon, and there has been none yet, or is none now */
  LOCKSTEP_ERROR_CLOSED = -13,       /* the connection has ended for good */
  LOCKSTEP_ERROR_SUBSCRIPTION = -14, /* the connection has no subscription of this number */
  LOCKSTEP_ERROR_DUPLICATE = -15,    /* the connection has a subscription to this path already */
  LOCKSTEP_ERROR_SOCKET_PATH = -16,  /* the path of the socket is empty or longer than 107 bytes */
  LOCKSTEP_ERROR_SYSTEM = -17,       /* a call of the system failed: see errno */
  LOCKSTEP_ERROR_LIMIT = -18         /* a limit of this library was reached */
};

/* A sentence for an error, in English. Never NULL; lives as long as the library. Any thread. */
const char *lockstep_error_text(int error);

/* ---- Connections ------------------------------------------------------------------------------- */

typedef struct lockstep_connection lockstep_connection;

enum lockstep_connect_flag {
  /* Wait for a daemon that does not listen yet, instead of failing at once. */
  LOCKSTEP_WAIT_FOR_DAEMON = 1,
  /* End when the connection is lost. Without it, the library connects again, with exponential backoff
   * from 20 ms to 5 s, resumes its session, continues its mirrors, and retries unacknowledged
   * actions, each of which is applied exactly once or reported as LOCKSTEP_OUTCOME_UNKNOWN. */
  LOCKSTEP_NO_RECONNECT = 2,
  /* Do not compare digests of the mirrors with the daemon once a minute. */
  LOCKSTEP_NO_DIGESTS = 4
};

/* How to connect. Begin with all zero, `lockstep_options options = {0};`, which is the default. */
typedef struct lockstep_options {
  /* The path of the daemon's socket. NULL for a standard one, as for all of Lockstep's programs:
   * $LOCKSTEP_SOCKET if it is set; else the first that has a socket, of lockstep.sock in
   * $XDG_RUNTIME_DIR (if that is not set, in /run/user/UID), /run/lockstep/lockstep.sock, and
   * /tmp/lockstep-UID/lockstep.sock, whose directory must be closed to others. The last comes second
   * for a user who may not write to /run/lockstep. With LOCKSTEP_WAIT_FOR_DAEMON they are looked
   * through at each attempt, until the first that succeeds. */
  const char *socket;
  /* The name of this client in the daemon's reports. NULL for the program's name. */
  const char *label;
  /* Of enum lockstep_connect_flag. */
  uint32_t flags;
  uint32_t reserved_flags;
  uint64_t reserved[4];
} lockstep_options;

/* Connect. Returns at once: an event LOCKSTEP_EVENT_STATE tells when the daemon has answered. The
 * caller owns the connection, and releases it with lockstep_free. `options` may be NULL.
 *
 * Without LOCKSTEP_WAIT_FOR_DAEMON: LOCKSTEP_ERROR_SYSTEM when the daemon cannot be reached; errno is
 * ENOENT (no such socket), ECONNREFUSED (no daemon listens) or EACCES (permission denied), for
 * example. On failure *connection becomes NULL. Any thread. */
int lockstep_connect(const lockstep_options *options, lockstep_connection **connection);

/* Say goodbye. What was sent before still goes out, as far as the socket takes it; continue to dispatch
 * until LOCKSTEP_STATE_CLOSED and lockstep_flush is 1 to be sure. Unacknowledged actions become
 * LOCKSTEP_OUTCOME_UNKNOWN: wait for their outcomes before closing. */
int lockstep_close(lockstep_connection *connection);

/* Close if necessary, without blocking, and release the connection with everything that belongs to it.
 * NULL is allowed. */
void lockstep_free(lockstep_connection *connection);

enum lockstep_state {
  LOCKSTEP_STATE_CONNECTING = 0,
  /* The daemon has answered. Mirrors follow it once they have arrived (LOCKSTEP_EVENT_CHANGED). */
  LOCKSTEP_STATE_LIVE = 1,
  /* The connection is lost: mirrors show the values from when it was. The library connects again. */
  LOCKSTEP_STATE_STALE = 2,
  /* Final: closed by this side, or by the daemon with a reason that reconnecting would not change. */
  LOCKSTEP_STATE_CLOSED = 3
};

/* The state of the connection, of enum lockstep_state. */
int lockstep_state(const lockstep_connection *connection);

/* What is known about the connection and its daemon. Zero before the first answer of a daemon. */
typedef struct lockstep_info {
  uint32_t protocol_version;
  uint32_t is_durable;      /* whether the daemon keeps revisions across a crash */
  uint64_t epoch, run;      /* the daemon's history, and its life within it, at the welcome */
  uint64_t revision;        /* of the state, at the welcome */
  uint64_t durable;         /* the newest revision that survives a crash, at the welcome */
  uint64_t session;         /* the daemon's number of this session: presence in the state names it */
  uint64_t window;          /* how many actions may be unacknowledged at a time; others wait here */
  uint64_t unacknowledged;  /* how many actions have no outcome yet */
  uint64_t pid, uid, gid;   /* this process, as the daemon sees it: the credentials of the socket */
  uint64_t reserved[4];
} lockstep_info;

int lockstep_get_info(const lockstep_connection *connection, lockstep_info *info);

/* What the last function that failed on this connection has to say beyond its error: the position in
 * the JSON, the names of the actions that there are. "" if nothing. Never NULL. Valid until the next
 * call with this connection. */
const char *lockstep_last_message(const lockstep_connection *connection);

/* ---- In a loop: epoll, libuv, GLib, sd-event ----------------------------------------------------- *
 *
 * Watch lockstep_fd for lockstep_events, and set a timer for lockstep_timeout. When either fires,
 * call lockstep_dispatch, take all events, and ask for the timeout again. After calls that send,
 * nothing need be done: what waits to be sent makes the descriptor ready. */

/* The descriptor to watch. It is the same for the life of the connection, however often the library
 * reconnects. It belongs to the library: do not read, write or close it. */
int lockstep_fd(const lockstep_connection *connection);

/* What to watch for, of poll(2): at present always POLLIN. */
int lockstep_events(const lockstep_connection *connection);

/* After how many milliseconds lockstep_dispatch must be called, even if the descriptor is not ready:
 * -1 for never, 0 for now. */
int lockstep_timeout(const lockstep_connection *connection);

/* Write what waits, read what has come, apply it to the mirrors, and do what is due: retries,
 * heartbeats. Never blocks. Reads at most 1 MiB, so that a loop comes to its other work; the
 * descriptor stays ready when there is more. Returns 0, or LOCKSTEP_ERROR_CLOSED when the connection
 * has ended and no event waits. */
int lockstep_dispatch(lockstep_connection *connection);

/* Dispatch, and sleep in between, until an event waits or the time is up; -1 for no limit, 0 for not at
 * all. Returns 1 if an event waits, 0 if the time is up, LOCKSTEP_ERROR_CLOSED when the connection has
 * ended and no event waits, and LOCKSTEP_ERROR_SYSTEM with errno EINTR after a signal. */
int lockstep_wait(lockstep_connection *connection, int timeout_ms);

/* Write what waits to be sent, without blocking. Otherwise it is written by the next dispatch, as one
 * write. Returns 1 when nothing waits any more, else 0. */
int lockstep_flush(lockstep_connection *connection);

/* ---- Events ------------------------------------------------------------------------------------ */

enum lockstep_event_kind {
  /* The state of the connection changed: `state`; for STALE and CLOSED also why: `code` (of enum
   * lockstep_goodbye), `message`, and, where a limit was exceeded, `limit`, `allowed`, `observed`. */
  LOCKSTEP_EVENT_STATE = 1,
  /* A mirror changed: `subscription`, and `revision`, which it shows now. Changes that come before the
   * event is taken share one event. The first tells that the mirror is complete. With LOCKSTEP_PLACES
   * also which places changed: `place_count`. */
  LOCKSTEP_EVENT_CHANGED = 2,
  /* The outcome of the actions from `action` to `last_action`: `outcome`, `revision`, `is_durable`,
   * `sequence`; for REJECTED also `code`, `message`, `path`. The mirrors already show the changes of
   * these actions. */
  LOCKSTEP_EVENT_OUTCOME = 3,
  /* The daemon does not or no longer show the path of `subscription`: `code` of enum lockstep_refusal,
   * `message`. The mirror is absent. */
  LOCKSTEP_EVENT_REFUSED = 4,
  /* The answer to lockstep_query: `query`, `value`, which is valid until the next dispatch. */
  LOCKSTEP_EVENT_REPORT = 5
};

enum lockstep_outcome {
  LOCKSTEP_OUTCOME_APPLIED = 1,   /* the state changed */
  LOCKSTEP_OUTCOME_UNCHANGED = 2, /* the action was done and changed nothing */
  LOCKSTEP_OUTCOME_SWALLOWED = 3, /* a middleware of the daemon consumed the action */
  LOCKSTEP_OUTCOME_ACCEPTED = 4,  /* the action began work that still goes on */
  LOCKSTEP_OUTCOME_REJECTED = 5,  /* not done: `code`, `message`, `path`; code 0 if it was never sent */
  LOCKSTEP_OUTCOME_UNKNOWN = 6    /* whether it was done cannot be known; the library does not retry it */
};

/* Why a connection ended; the numbers are those of the protocol. */
enum lockstep_goodbye {
  LOCKSTEP_GOODBYE_DONE = 0,            /* closed by this side, or lost without a word */
  LOCKSTEP_GOODBYE_MALFORMED = 1,       /* bytes that are no message */
  LOCKSTEP_GOODBYE_FRAME_TOO_LARGE = 2,
  LOCKSTEP_GOODBYE_VERSION = 3,         /* no version of the protocol in common */
  LOCKSTEP_GOODBYE_OUT_OF_ORDER = 4,
  LOCKSTEP_GOODBYE_UNKNOWN_MESSAGE = 5,
  LOCKSTEP_GOODBYE_STOPPING = 6,        /* the daemon stops */
  LOCKSTEP_GOODBYE_REPLACED = 7,        /* another connection took over the session */
  LOCKSTEP_GOODBYE_STALLED = 8,         /* this side did not read for too long */
  LOCKSTEP_GOODBYE_LIMIT = 9,           /* a limit of the daemon was exceeded */
  LOCKSTEP_GOODBYE_DENIED = 10,
  LOCKSTEP_GOODBYE_SCHEMA = 11,         /* the state has something that this side cannot read */
  LOCKSTEP_GOODBYE_RESTARTING = 12      /* the daemon restarts */
};

/* Why a subscription is refused. */
enum lockstep_refusal {
  LOCKSTEP_REFUSAL_DUPLICATE = 7,
  LOCKSTEP_REFUSAL_LIMIT = 8,     /* too many subscriptions, or the path is too long */
  LOCKSTEP_REFUSAL_DENIED = 9,    /* the daemon's policy does not let this user see the path */
  LOCKSTEP_REFUSAL_MEMORY = 11,   /* the daemon has no memory for the snapshot */
  LOCKSTEP_REFUSAL_UNREADABLE = 100 /* the value has something that this side cannot read */
};

/* A value in a mirror. Small, and passed by value: it owns nothing and is never released. An absent
 * value and a failed lookup are values too, so that calls can be nested:
 * lockstep_integer(lockstep_get(connection, lamp, "/level"), &level). Its members are for the library
 * alone. */
typedef struct lockstep_value {
  const lockstep_connection *connection;
  uint64_t generation;
  const void *place;
} lockstep_value;

typedef struct lockstep_event {
  int32_t kind;           /* of enum lockstep_event_kind; it says which members are meant: the others are 0 */
  int32_t state;          /* of enum lockstep_state */
  uint64_t subscription;
  uint64_t revision;
  size_t place_count;     /* how many places lockstep_place has; 0 when they are not known */
  uint64_t action, last_action;
  int32_t outcome;        /* of enum lockstep_outcome */
  int32_t is_durable;     /* whether the outcome survives a crash of the daemon */
  uint64_t code;          /* of a rejection, a goodbye or a refusal */
  const char *message;    /* for people; ends with a zero byte; NULL if there is none. Of an outcome that
                             was to be durable and is not, it may say why. */
  const char *path;       /* of a rejection, a JSON Pointer; ends with a zero byte; NULL if there is none */
  const char *limit;      /* of a goodbye, the name of the limit that was exceeded; NULL if none was */
  uint64_t allowed, observed;
  int64_t retry_after_ms; /* of a goodbye, when to connect again; -1 if the daemon did not say */
  uint64_t sequence;      /* of an outcome, the first action's number in the daemon's log; 0 if unknown */
  uint64_t query;
  lockstep_value value;
  uint64_t reserved[4];
} lockstep_event;

/* Take the next event. Returns 1 and fills *event, or 0 when none waits. Its texts are valid until the
 * next lockstep_next_event or dispatch. Events come in order; they tell what the mirrors, which show the
 * newest revision, have gone through. `event` must not be NULL. */
int lockstep_next_event(lockstep_connection *connection, lockstep_event *event);

/* A place that changed, of the event that was taken last: a JSON Pointer relative to the path of its
 * subscription, as lockstep_get takes it, that ends with a zero byte; "" is the whole. Every part of the
 * mirror that changed is at one of the places or inside. More than 1,000 places are told as the whole.
 * NULL when there is no place of this index. */
const char *lockstep_place(const lockstep_connection *connection, size_t index, size_t *length);

/* ---- Subscriptions ------------------------------------------------------------------------------ */

enum lockstep_subscribe_flag {
  /* Note which places change. It costs reading every patch a second time. */
  LOCKSTEP_PLACES = 1
};

/* Mirror the value at a path, a JSON Pointer through objects, "" for the whole state. A path without a
 * value is mirrored too: the value may come. States with types are shown by the names of their fields:
 * structs are objects, and cases "name" or {"name": fields}, as in the JSON of actions.
 *
 * May be called in every state but CLOSED, and holds over reconnects. *subscription becomes the number of
 * the subscription, never 0 and never used again; with LOCKSTEP_ERROR_DUPLICATE, that of the other one. */
int lockstep_subscribe(
    lockstep_connection *connection, const char *path, uint32_t flags, uint64_t *subscription);

/* End a subscription, and release its mirror. Values become invalid as by a dispatch. */
int lockstep_unsubscribe(lockstep_connection *connection, uint64_t subscription);

typedef struct lockstep_mirror_info {
  uint32_t is_complete;          /* whether a value, or its absence, is known: its first snapshot has come */
  uint32_t is_live;              /* whether it follows the daemon now */
  uint64_t epoch, run, revision; /* the position that it shows */
  uint64_t snapshots, patches, bytes; /* received */
  uint64_t coalesced;            /* revisions that were merged into wider patches on the way */
  uint64_t resyncs;              /* how often it was replaced because it had diverged */
  uint64_t reserved[4];
} lockstep_mirror_info;

int lockstep_get_mirror_info(
    const lockstep_connection *connection, uint64_t subscription, lockstep_mirror_info *info);

/* ---- Reading ----------------------------------------------------------------------------------- *
 *
 * Nothing is copied: a value is the address of a value in the mirror, and its texts and bytes are the
 * mirror's. (An exception that shows only as time: a text of at most 15 bytes is copied when the
 * mirror's storage cannot be pointed to.) So all of it ends with the next dispatch. */

enum lockstep_kind {
  LOCKSTEP_ABSENT = 0,
  LOCKSTEP_NULL = 1,
  LOCKSTEP_BOOLEAN = 2,
  LOCKSTEP_INTEGER = 3, /* from -2^63 to 2^64 - 1 */
  LOCKSTEP_DOUBLE = 4,
  LOCKSTEP_TEXT = 5,
  LOCKSTEP_BYTES = 6,
  LOCKSTEP_ARRAY = 7,
  LOCKSTEP_OBJECT = 8
};

/* The value at a JSON Pointer inside a mirror, relative to the subscription's path; NULL or "" for the
 * whole mirror. Steps into arrays are decimal indices. O(length of the pointer + log entries). */
lockstep_value lockstep_get(
    lockstep_connection *connection, uint64_t subscription, const char *pointer);

/* The value at a JSON Pointer inside a value. */
lockstep_value lockstep_child(lockstep_value value, const char *pointer);

/* The member of an object with this name, which need not end with a zero byte. */
lockstep_value lockstep_member(lockstep_value object, const char *name, size_t length);

/* The element of an array. */
lockstep_value lockstep_element(lockstep_value array, size_t index);

/* The kind of a value, of enum lockstep_kind; or the error of the lookup that led to it. */
int lockstep_kind(lockstep_value value);

/* Each of these gives the contents of a value: LOCKSTEP_ERROR_ABSENT if there is none,
 * LOCKSTEP_ERROR_KIND if it is of another kind, LOCKSTEP_ERROR_RANGE if the number does not fit.
 * lockstep_double also takes an integer, and rounds it to the nearest double. */
int lockstep_boolean(lockstep_value value, bool *result);
int lockstep_integer(lockstep_value value, int64_t *result);
int lockstep_unsigned(lockstep_value value, uint64_t *result);
int lockstep_double(lockstep_value value, double *result);

/* The text or the bytes of a value, in the mirror's own storage. They do not end with a zero byte; an
 * empty one has a pointer that is not NULL. */
int lockstep_text(lockstep_value value, const char **text, size_t *length);
int lockstep_bytes(lockstep_value value, const uint8_t **bytes, size_t *length);

/* Copy a text, and a zero byte behind it, into a buffer of `capacity` bytes. Returns the length of the
 * text; if that is not less than `capacity`, the copy was cut, at a character, as snprintf does. */
int64_t lockstep_copy_text(lockstep_value value, char *buffer, size_t capacity);

/* The number of elements of an array or members of an object, or an error. O(1). */
int64_t lockstep_count(lockstep_value value);

/* A walk over an array or an object. The caller provides it; it owns nothing and is never released. */
typedef struct lockstep_iterator {
  lockstep_value value; /* the current element or member */
  const char *name;     /* the member's name, without a zero byte at its end; NULL in an array */
  size_t name_length;
  size_t index;         /* the current index; of members, the ordinal */
  /* For the library alone. */
  lockstep_value container;
  const void *leaf;
  size_t offset;
  uint64_t started;
} lockstep_iterator;

/* Begin a walk. The members of an object come in an order that changes when the object does. */
int lockstep_iterate(lockstep_value container, lockstep_iterator *iterator);

/* Go to the next element or member. Returns 1, or 0 at the end. O(1) on average. */
int lockstep_next(lockstep_iterator *iterator);

/* ---- Export ------------------------------------------------------------------------------------ */

enum lockstep_export_flag {
  LOCKSTEP_PRETTY = 1, /* JSON on several lines */
  LOCKSTEP_SORTED = 2  /* members by their names: in JSON by their bytes, in CBOR deterministic (RFC 8949) */
};

/* A value with everything inside, as JSON that ends with a zero byte, or as CBOR. *length, if not NULL,
 * becomes the length without that zero byte. The caller owns the buffer, and releases it with
 * lockstep_release. What JSON cannot express is written as {"$bytes": base64} or {"$double": "NaN"}. */
int lockstep_export_json(lockstep_value value, uint32_t flags, char **json, size_t *length);
int lockstep_export_cbor(lockstep_value value, uint32_t flags, uint8_t **bytes, size_t *length);

/* Release a buffer of lockstep_export_json or lockstep_export_cbor. NULL is allowed. Any thread. */
void lockstep_release(void *buffer);

/* ---- Actions ----------------------------------------------------------------------------------- */

enum lockstep_send_flag {
  /* The outcome comes when the change survives a crash of the daemon, not only of this client. */
  LOCKSTEP_DURABLE = 1
};

/* Send an action by its name, with what it carries as JSON:
 *
 *     lockstep_send(connection, "increment", "{\"path\": \"/visits\", \"by\": 1}", 0, &action);
 *     lockstep_send(connection, "todos.add", "\"milk\"", 0, &action);
 *     lockstep_send(connection, "beds.water", "[3, {\"seconds\": 60}]", 0, &action);
 *     lockstep_send(connection, "reset", NULL, 0, &action);
 *     lockstep_send(connection, NULL, "{\"todos\": {\"add\": \"milk\"}}", 0, &action);
 *
 * Cases inside of cases are joined by dots. Where an outer case carries other values before the action,
 * as a row's does its key, `arguments` is an array of them and of what the action carries, if anything.
 * `arguments` is NULL for an action that carries nothing. With
 * `name` NULL, `arguments` is the whole action. The daemon's schema gives names their meaning, so one
 * must have answered before: until then LOCKSTEP_ERROR_NOT_CONNECTED. `lockstep schema` lists the actions.
 *
 * *action becomes the number of the action, from 1 on in the order of sending; an event
 * LOCKSTEP_EVENT_OUTCOME tells its outcome. While the connection is lost, actions wait here, and are
 * sent when it is back: each is applied exactly once. */
int lockstep_send(
    lockstep_connection *connection, const char *name, const char *arguments, uint32_t flags,
    uint64_t *action);

/* The same, with what the action carries as CBOR of the same form: bytes are byte strings. `arguments` is
 * NULL for an action that carries nothing. */
int lockstep_send_cbor(
    lockstep_connection *connection, const char *name, const void *arguments, size_t length,
    uint32_t flags, uint64_t *action);

/* The same, with the whole action in the form that travels ("Document actions" and "Schemas" of the
 * protocol): one item of CBOR. Needs no schema, and so no daemon that has answered. */
int lockstep_send_encoded(
    lockstep_connection *connection, const void *payload, size_t length, uint32_t flags,
    uint64_t *action);

/* ---- Queries ----------------------------------------------------------------------------------- */

/* Ask the daemon about itself: "status", "clients", "limits", "log" ("Reports" of the protocol).
 * `arguments` is an array of `count` texts. *query becomes a number; an event LOCKSTEP_EVENT_REPORT has
 * the answer, a value. A query is not repeated when the connection is lost. */
int lockstep_query(
    lockstep_connection *connection, const char *name, const char *const *arguments, size_t count,
    uint64_t *query);

#ifdef __cplusplus
}
#endif

#endif
