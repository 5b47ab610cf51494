#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Stop with a sentence, and what errno says if it says something.
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

uint64_t nanoseconds(void);
// The time that all threads of a process have been running; 0 if there is none.
uint64_t cpu_nanoseconds(uint64_t process);

// The same of this process.
uint64_t own_cpu_nanoseconds(void);

// A blocking connection to a path, or to an address and port.
int connect_to(const char *path);
void set_nonblocking(int descriptor);
void write_all(int descriptor, const void *bytes, size_t count);
// Wait until one of these poll events happens.
void wait_for(int descriptor, short events);

// A fast pseudo-random sequence.
uint64_t random_next(uint64_t *state);

// Print `name=…`, a time by a count in microseconds.
void print_each(const char *name, uint64_t nanoseconds, uint64_t count);
// Print `name_p50=… name_p90=… name_p99=… name_p999=… name_max=…`, in microseconds.
void print_percentiles(const char *name, uint64_t *values, size_t count);
