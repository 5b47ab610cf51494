#pragma once
#include <sys/prctl.h>
#include <sys/socket.h>
#include <uv.h>

/* Names the calling thread; prctl is variadic, which Swift cannot call. */
static inline void clibuv_name_thread(const char *name) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
}

/* The C library's headers show it to GNU programs only. */
extern int accept4(int, struct sockaddr *, socklen_t *, int);

/* Accepts a connection that no child process inherits; -1 and errno if there is none. */
static inline int clibuv_accept(int descriptor) {
  return accept4(descriptor, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
