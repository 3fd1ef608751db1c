/* Checkpoints whose weights are a function of (seed, name, index): tools/golden/weights.py states
   it, this is the same in C.  Tests so need to keep manifests and results only. */
#ifndef GOLDEN_MKWEIGHTS_H
#define GOLDEN_MKWEIGHTS_H

#include "cairn/status.h"

enum { MKWEIGHTS_PATH = 256 };

/* Makes a temporary directory with a copy of golden_dir's JSON files and folders, and the model.safetensors
   that each weights.json among them stands for.  out_dir receives its path; mkweights_remove deletes it. */
cairn_status mkweights_temp(const char *golden_dir, char out_dir[MKWEIGHTS_PATH], cairn_diag *dg);
void mkweights_remove(const char *dir); /* with all that is in it */

/* Writes one file from one manifest. */
cairn_status mkweights_write(const char *weights_json, const char *out_path, cairn_diag *dg);

#endif
