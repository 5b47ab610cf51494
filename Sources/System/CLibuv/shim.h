#pragma once
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
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

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* A descriptor of the process that has this number now, which no child inherits; -1 and errno if
   there is none. syscall is variadic, which Swift cannot call. */
static inline int clibuv_pidfd_open(int pid) {
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Whether this user could send a signal to the process of the descriptor; -1 and errno if not. */
static inline int clibuv_pidfd_probe(int descriptor) {
  return (int)syscall(SYS_pidfd_send_signal, descriptor, 0, 0, 0);
}
