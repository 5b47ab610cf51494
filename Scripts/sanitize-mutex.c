// Shows the thread sanitizer the part of Swift's Mutex that it cannot see.
//
// On Linux, Mutex is a futex with priority inheritance. Who finds it free takes it by an atomic
// operation in the caller, which the sanitizer sees. Who finds it taken waits in the library, where
// the kernel hands the lock on; that order between two threads goes unseen, and what the lock
// guards is reported as a race. Loaded before the library, these tell it. The names and the
// calling convention are those of Synchronization/Mutex/LinuxImpl.swift of Swift 6.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define NAME(part) "$s15Synchronization12_MutexHandleV" part
#define LOCK NAME("9_lockSlowyys6UInt32VF")
#define TRY_LOCK NAME("12_tryLockSlowSbyF")
#define UNLOCK NAME("11_unlockSlowyyF")
#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

// Absent in processes that are not sanitized.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

SWIFT void lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF) __asm__(TRY_LOCK);
SWIFT void unlock_slow(SELF) __asm__(UNLOCK);

SWIFT void lock_slow(uint32_t thread, SELF) {
  SWIFT void (*next)(uint32_t, SELF) = dlsym(RTLD_NEXT, LOCK);
  next(thread, self);
  if (__tsan_acquire) __tsan_acquire(self);
}

SWIFT bool try_lock_slow(SELF) {
  SWIFT bool (*next)(SELF) = dlsym(RTLD_NEXT, TRY_LOCK);
  bool taken = next(self);
  if (taken && __tsan_acquire) __tsan_acquire(self);
  return taken;
}

SWIFT void unlock_slow(SELF) {
  SWIFT void (*next)(SELF) = dlsym(RTLD_NEXT, UNLOCK);
  if (__tsan_release) __tsan_release(self);
  next(self);
}
