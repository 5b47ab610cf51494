#pragma once

/* What the C library has and its headers show to GNU programs only. */
extern int memfd_create(const char *name, unsigned int flags);
extern int pipe2(int descriptors[2], int flags);
#include <malloc.h>
/* And what the module of the C library leaves out. */
#include <sys/epoll.h>

/* The bytes that the allocator has of the system and that nothing uses. */
static inline size_t lockstep_unused_bytes(void) { return mallinfo2().fordblks; }
