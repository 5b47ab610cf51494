#pragma once

/* What the C library has and its headers show to GNU programs only. */
extern int memfd_create(const char *name, unsigned int flags);
extern int pipe2(int descriptors[2], int flags);
/* And what the module of the C library leaves out. */
#include <sys/epoll.h>

#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Ask the scheduler to let the calling thread run for at most this long at a time, and in return soon
 * after it wakes (sched_setattr(2); Linux 6.12 and later; others ignore it). Threads that it starts do
 * not inherit that. Returns 0, or -1. */
static inline int lockstep_request_slice(uint64_t nanoseconds) {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {.size = 48, .flags = 1 /* SCHED_FLAG_RESET_ON_FORK */,
                  .nice = getpriority(PRIO_PROCESS, 0), .runtime = nanoseconds};
  return (int)syscall(SYS_sched_setattr, 0, &attributes, 0u);
}
