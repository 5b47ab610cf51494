#include "allocator.h"

#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <unistd.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define ALL TEXT(MALLCTL_ARENAS_ALL)

// What jemalloc reads before the first allocation of the process; MALLOC_CONF overrides it.
//
// `narenas`: a daemon has one thread that must not wait and a few beside it, also where there are a hundred
// cores, for each of which jemalloc would have four arenas. `dss`: mappings only, for what is not one cannot
// be unmapped. `slab_sizes`: blocks of 64 bytes to 4 KB are made from 32 KB, and not from one page or a few,
// each of which is a call of the kernel while the state grows (a tenth of a start with 1,000,000 entries),
// smaller ones from as much as 512 of them take, which is all that jemalloc allows; and none from less than
// 16 KB, for smaller pieces are not joined when they are free (but those of 8 and 16 bytes, in which no
// object of Swift fits). The sizes are in pages, of 4 KB here.
//
// The others say how free memory goes back to the system. A process may have 65,530 mappings
// (vm.max_map_count), and what is unmapped in the middle of one splits it: 150,000 blocks of 4 KB, of which
// every other one is freed, are enough. Then the kernel refuses to unmap, and to map. So what is free
// among small blocks is kept, for 317 years, as the C library does, and goes back when it is asked for
// (`lockstep_allocator_trim`), if that leaves the process far from the limit. Blocks of 1 MB and more have an
// arena of their own (`oversize_threshold`), in which jemalloc keeps nothing: what is free is unmapped. So
// is what becomes 1 MB in one piece among small blocks (8 in the first arena), of which there are few.
//
// `retain` is jemalloc's own way: addresses are kept and pages are returned (MADV_DONTNEED). But where it
// cannot read /proc/sys (ProcSubset=pid, as in our units) or the system does not overcommit, it maps free
// pages anew instead, and the pattern above ends the process. And under a limit of the process (LimitAS=,
// LimitDATA=) large blocks do not find the addresses that were kept. To offer pages to the kernel (MADV_FREE,
// jemalloc's "muzzy") splits nothing, but those that are used again count as file cache for long, so that
// nobody could tell what a control group leaves. `extent_hooks`, by which all could be chosen, deadlock in
// the first arena when a thread allocates for the first time inside of one (5.3.0).
const char *malloc_conf =
  "narenas:4,dss:disabled,slab_sizes:1-4096:8|6144-6144:6|8192-8192:8|12288-12288:6,"
  "retain:false,dirty_decay_ms:10000000000000,muzzy_decay_ms:0,oversize_threshold:1048576";

// Half of what the kernel allows by itself, less what else a process maps.
static const size_t most_mappings = 30000;

// Without this the other numbers are those of the last time.
static bool refresh(void) {
  uint64_t epoch = 1;
  return mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0;
}

// The sum over all arenas of a number that jemalloc has for each class of free pieces, from the class with
// this index on: those of 1, 2 ... 8 pages, and larger ones. SIZE_MAX if it is not known.
static size_t sum_of_pieces(const char *first, size_t index) {
  size_t name[6], length = 6, sum = 0;
  if (!refresh() || mallctlnametomib(first, name, &length) != 0) return SIZE_MAX;
  for (name[4] = index;; name[4]++) {
    size_t value = 0, size = sizeof value;
    if (mallctlbymib(name, length, &value, &size, NULL, 0) != 0) break;
    sum += value;
  }
  return name[4] > index ? sum : SIZE_MAX;
}

// The number of places in which unused bytes are; SIZE_MAX if it is not known.
static size_t places(void) { return sum_of_pieces("stats.arenas." ALL ".extents.0.ndirty", 0); }

// The number of the process's mappings; SIZE_MAX if it is not known.
static size_t mappings(void) {
  int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return SIZE_MAX;
  size_t lines = 0;
  char text[4096];
  ssize_t count;
  while ((count = read(file, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < count; i++) lines += text[i] == '\n';
  }
  close(file);
  return count == 0 ? lines : SIZE_MAX;
}

// Whether the process stays far from the kernel's limit if each place becomes a hole.
static bool can_trim(void) {
  size_t holes = places();
  return holes <= most_mappings && mappings() <= most_mappings - holes;
}

size_t lockstep_allocator_unused(void) {
  size_t page = 0, size = sizeof page;
  if (mallctl("arenas.page", &page, &size, NULL, 0) != 0 || page == 0) return 0;
  // In less than 32 KB not all small blocks can be made.
  size_t bytes = sum_of_pieces(
    "stats.arenas." ALL ".extents.0.dirty_bytes", page < 32768 ? 32768 / page - 1 : 0);
  return bytes == SIZE_MAX || !can_trim() ? 0 : bytes;
}

bool lockstep_allocator_trim(void) {
  return can_trim() && mallctl("arena." ALL ".purge", NULL, NULL, NULL, 0) == 0;
}
