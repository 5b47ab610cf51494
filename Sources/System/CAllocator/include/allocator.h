// The allocator of a daemon: jemalloc, for all of the process that this is linked into.
//
// The C library's own lets others wait. What a thread has freed that another one allocated is sorted by
// the next allocations of the latter, up to 10,000 blocks in each: 10 to 36 ms of the daemon's loop, after
// a thread beside it has released the state of which it made a snapshot.
#ifndef LOCKSTEP_ALLOCATOR_H
#define LOCKSTEP_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

// The bytes in which nothing is, kept for the next small blocks, in pieces of which those can be made; 0
// where they are in so many places that a trim would do nothing, for there is no room in them for blocks of
// more than 32 KB. O(the bins of its arenas + the process's mappings), 0.1 ms, in which other threads may
// wait.
size_t lockstep_allocator_unused(void);

// Return the unused bytes to the system, but what threads keep for their next small blocks. O(what is
// unused), some milliseconds for a hundred megabytes, during which other threads can allocate.
//
// Returns false, and does nothing, where they are in so many places that the process would come near the
// kernel's limit of mappings.
bool lockstep_allocator_trim(void);

#endif
