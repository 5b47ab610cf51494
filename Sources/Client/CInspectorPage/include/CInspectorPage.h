// The page of the inspector, which is in the program: see page.c.
#ifndef LOCKSTEP_INSPECTOR_PAGE_H
#define LOCKSTEP_INSPECTOR_PAGE_H

#include <stddef.h>

typedef struct {
  const char *name;
  const unsigned char *bytes;
  size_t count;
} lockstep_page_file;

// The file with this name, which lasts as long as the process; NULL if the page has none.
const lockstep_page_file *lockstep_page_find(const char *name);

#endif
