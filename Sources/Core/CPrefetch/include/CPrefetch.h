#ifndef CPREFETCH_H
#define CPREFETCH_H

// Have the cache line at an address read soon. A hint: any address is allowed, and nothing waits for it.
static inline void prefetch_line(const void *address) {
  __builtin_prefetch(address, 0, 3);
}

#endif
