/* Watches a part of a daemon's state in an epoll loop, and prints what changes.
 *
 *     cc watch-epoll.c -o watch-epoll $(pkg-config --cflags --libs lockstep)
 *     ./watch-epoll /lamp
 */
#include <inttypes.h>
#include <lockstep.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Print the places that changed, with their values. */
static void print_changes(lockstep_connection *connection, const lockstep_event *event) {
  for (size_t index = 0; index < event->place_count; index++) {
    const char *place = lockstep_place(connection, index, NULL);
    lockstep_value value = lockstep_get(connection, event->subscription, place);
    char *json;
    if (lockstep_export_json(value, LOCKSTEP_SORTED, &json, NULL) == 0) {
      printf("%" PRIu64 " %s = %s\n", event->revision, place, json);
      lockstep_release(json);
    } else {
      printf("%" PRIu64 " %s is gone\n", event->revision, place);
    }
  }
  fflush(stdout);
}

/* Take all events. Returns whether the connection goes on. */
static int take_events(lockstep_connection *connection) {
  lockstep_event event;
  while (lockstep_next_event(connection, &event) > 0) {
    switch (event.kind) {
    case LOCKSTEP_EVENT_CHANGED: print_changes(connection, &event); break;
    case LOCKSTEP_EVENT_REFUSED: fprintf(stderr, "refused: %s\n", event.message); return 0;
    case LOCKSTEP_EVENT_STATE:
      if (event.state == LOCKSTEP_STATE_STALE) fprintf(stderr, "lost; connecting again\n");
      if (event.state == LOCKSTEP_STATE_CLOSED) {
        fprintf(stderr, "closed: %s\n", event.message ? event.message : "");
        return 0;
      }
      break;
    default: break;
    }
  }
  return 1;
}

int main(int argc, char **argv) {
  lockstep_connection *connection;
  int error = lockstep_connect(NULL, &connection);
  if (error == 0) error = lockstep_subscribe(connection, argc > 1 ? argv[1] : "", LOCKSTEP_PLACES, NULL);
  if (error != 0) {
    fprintf(stderr, "%s: %s\n", argv[0], lockstep_error_text(error));
    if (error == LOCKSTEP_ERROR_SYSTEM) perror(argv[0]);
    lockstep_free(connection);
    return 1;
  }
  /* One descriptor for the life of the connection. A program of yours has others in its loop. */
  int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event watched = {.events = EPOLLIN};
  epoll_ctl(loop, EPOLL_CTL_ADD, lockstep_fd(connection), &watched);
  while (take_events(connection)) {
    struct epoll_event ready;
    epoll_wait(loop, &ready, 1, lockstep_timeout(connection));
    lockstep_dispatch(connection);
  }
  close(loop);
  lockstep_free(connection);
  return 0;
}
