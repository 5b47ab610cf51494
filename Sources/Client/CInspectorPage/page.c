// What SwiftPM would embed as a literal of Swift takes minutes to compile. Scripts/check compares the table
// with the folder.
#include "CInspectorPage.h"

#include <string.h>

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char action_js[] = {
#embed "Page/action.js"
};
static const unsigned char actions_js[] = {
#embed "Page/actions.js"
};
static const unsigned char changes_js[] = {
#embed "Page/changes.js"
};
static const unsigned char clients_js[] = {
#embed "Page/clients.js"
};
static const unsigned char connection_js[] = {
#embed "Page/connection.js"
};
static const unsigned char daemon_js[] = {
#embed "Page/daemon.js"
};
static const unsigned char dom_js[] = {
#embed "Page/dom.js"
};
static const unsigned char drawing_js[] = {
#embed "Page/drawing.js"
};
static const unsigned char effects_js[] = {
#embed "Page/effects.js"
};
static const unsigned char format_js[] = {
#embed "Page/format.js"
};
static const unsigned char index_html[] = {
#embed "Page/index.html"
};
static const unsigned char keys_js[] = {
#embed "Page/keys.js"
};
static const unsigned char main_js[] = {
#embed "Page/main.js"
};
static const unsigned char nodes_js[] = {
#embed "Page/nodes.js"
};
static const unsigned char place_js[] = {
#embed "Page/place.js"
};
static const unsigned char plots_js[] = {
#embed "Page/plots.js"
};
static const unsigned char pointer_js[] = {
#embed "Page/pointer.js"
};
static const unsigned char schema_js[] = {
#embed "Page/schema.js"
};
static const unsigned char send_js[] = {
#embed "Page/send.js"
};
static const unsigned char style_css[] = {
#embed "Page/style.css"
};
static const unsigned char tabs_js[] = {
#embed "Page/tabs.js"
};
static const unsigned char timeline_js[] = {
#embed "Page/timeline.js"
};
static const unsigned char tree_js[] = {
#embed "Page/tree.js"
};

static const lockstep_page_file files[] = {
    {"action.js", action_js, sizeof action_js},
    {"actions.js", actions_js, sizeof actions_js},
    {"changes.js", changes_js, sizeof changes_js},
    {"clients.js", clients_js, sizeof clients_js},
    {"connection.js", connection_js, sizeof connection_js},
    {"daemon.js", daemon_js, sizeof daemon_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"drawing.js", drawing_js, sizeof drawing_js},
    {"effects.js", effects_js, sizeof effects_js},
    {"format.js", format_js, sizeof format_js},
    {"index.html", index_html, sizeof index_html},
    {"keys.js", keys_js, sizeof keys_js},
    {"main.js", main_js, sizeof main_js},
    {"nodes.js", nodes_js, sizeof nodes_js},
    {"place.js", place_js, sizeof place_js},
    {"plots.js", plots_js, sizeof plots_js},
    {"pointer.js", pointer_js, sizeof pointer_js},
    {"schema.js", schema_js, sizeof schema_js},
    {"send.js", send_js, sizeof send_js},
    {"style.css", style_css, sizeof style_css},
    {"tabs.js", tabs_js, sizeof tabs_js},
    {"timeline.js", timeline_js, sizeof timeline_js},
    {"tree.js", tree_js, sizeof tree_js},
};

const lockstep_page_file *lockstep_page_find(const char *name) {
  for (size_t index = 0; index < sizeof files / sizeof *files; index++) {
    if (strcmp(files[index].name, name) == 0) return &files[index];
  }
  return NULL;
}
