#pragma once

/* What the C library has and its headers show to GNU programs only. */
extern int memfd_create(const char *name, unsigned int flags);
extern int pipe2(int descriptors[2], int flags);
