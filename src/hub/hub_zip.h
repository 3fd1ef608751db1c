/* Members of zip files (a wheel is one). */
#ifndef HUB_HUB_ZIP_H
#define HUB_HUB_ZIP_H

#include "base/buf.h"
#include "cairn/status.h"
#include "hub/hub_part.h"

/* Appends the member, or where it is NULL the only big file, of the zip file to p, inflated piece by
   piece and checked against its CRC.  E_CORRUPT: not that member, not one big file, damaged, or more
   bytes than p may take. */
cairn_status hub_zip_append(const char *zip, const char *member, hub_part *p, cairn_diag *dg);

void hub_zip_library(buf *out); /* name and version */

#endif
