/* In the place of parts of Swift's runtime that lockstepd and lockstep do not use, which the linker then
   leaves out: 0.7 MB. Linked together with swiftrt.o, the first file of every program, and so found
   before the runtime's own. */
#include <stdbool.h>
#include <stdint.h>

/* Backtraces of crashes, 0.16 MB: a program of the tool chain makes them, which is not installed. What
   the settings say is that they are off. */
const char _swift_backtraceSettings[1024];
bool _swift_backtrace_isThunkFunction(const char *name) {
  (void)name;
  return false;
}

/* What Unicode knows of a character besides its kind and its case, 0.57 MB, most of which are names:
   Unicode.Scalar.Properties says that there is nothing. */
intptr_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *buffer, intptr_t capacity) {
  (void)scalar, (void)buffer, (void)capacity;
  return 0;
}
uint16_t __wrap__swift_stdlib_getAge(uint32_t scalar) {
  (void)scalar;
  return UINT16_MAX;
}
uint8_t __wrap__swift_stdlib_getScript(uint32_t scalar) {
  (void)scalar;
  return UINT8_MAX;
}
