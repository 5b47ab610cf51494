/* Increments a number of a daemon of documents once a second, in a libuv loop, and prints each outcome.
 *
 *     cc count-libuv.c -o count-libuv $(pkg-config --cflags --libs lockstep libuv)
 *     ./count-libuv 3
 */
#include <inttypes.h>
#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

/* A connection in a libuv loop: the descriptor, and the timer for what is due without it. */
typedef struct client {
  lockstep_connection *connection;
  uint64_t count;
  uv_poll_t poll;
  uv_timer_t timer;
  uv_timer_t second;
  int left;
} client;

static void on_time(uv_timer_t *timer);

/* Have libuv call back when the library has something to do. */
static void arm(client *client) {
  int timeout = lockstep_timeout(client->connection);
  if (timeout < 0) uv_timer_stop(&client->timer);
  else uv_timer_start(&client->timer, on_time, (uint64_t)timeout, 0);
}

static void stop(client *client) {
  uv_close((uv_handle_t *)&client->poll, NULL);
  uv_close((uv_handle_t *)&client->timer, NULL);
  uv_close((uv_handle_t *)&client->second, NULL);
}

static void dispatch(client *client) {
  int64_t number;
  lockstep_event event;
  lockstep_dispatch(client->connection);
  while (lockstep_next_event(client->connection, &event) > 0) {
    switch (event.kind) {
    case LOCKSTEP_EVENT_OUTCOME:
      /* The mirror already shows what the action did. */
      if (event.outcome == LOCKSTEP_OUTCOME_APPLIED
          && lockstep_integer(lockstep_get(client->connection, client->count, ""), &number) == 0)
        printf("counted to %" PRId64 "\n", number);
      else
        printf("not counted: %s\n", event.message ? event.message : "the outcome is unknown");
      fflush(stdout);
      if (--client->left == 0) lockstep_close(client->connection);
      break;
    case LOCKSTEP_EVENT_STATE:
      if (event.state == LOCKSTEP_STATE_CLOSED) {
        stop(client);
        return;
      }
      break;
    default: break;
    }
  }
  arm(client);
}

static void on_ready(uv_poll_t *poll, int status, int events) {
  (void)status, (void)events;
  dispatch(poll->data);
}

static void on_time(uv_timer_t *timer) { dispatch(timer->data); }

static void on_second(uv_timer_t *timer) {
  client *client = timer->data;
  /* Until the daemon has answered, actions have no names. */
  lockstep_send(client->connection, "increment", "{\"path\": \"/count\", \"by\": 1}", 0, NULL);
  arm(client);
}

int main(int argc, char **argv) {
  client client = {.left = argc > 1 ? atoi(argv[1]) : 5};
  lockstep_options options = {.flags = LOCKSTEP_WAIT_FOR_DAEMON};
  int error = lockstep_connect(&options, &client.connection);
  if (error == 0) error = lockstep_subscribe(client.connection, "/count", 0, &client.count);
  if (error != 0) {
    fprintf(stderr, "%s: %s\n", argv[0], lockstep_error_text(error));
    return 1;
  }
  uv_loop_t *loop = uv_default_loop();
  client.poll.data = client.timer.data = client.second.data = &client;
  uv_poll_init(loop, &client.poll, lockstep_fd(client.connection));
  uv_poll_start(&client.poll, UV_READABLE, on_ready);
  uv_timer_init(loop, &client.timer);
  uv_timer_init(loop, &client.second);
  uv_timer_start(&client.second, on_second, 1000, 1000);
  arm(&client);
  uv_run(loop, UV_RUN_DEFAULT);
  lockstep_free(client.connection);
  uv_loop_close(loop);
  return 0;
}
