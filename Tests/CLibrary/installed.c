/* Finds the header and the library where they were installed. */
#include <lockstep.h>

int main(void) { return lockstep_abi_version() != LOCKSTEP_ABI_VERSION; }
