/* cairn: local language models in C.  Umbrella header. */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include "cairn/doctor.h"
#include "cairn/embed.h"
#include "cairn/engine.h"
#include "cairn/fit.h"
#include "cairn/model.h"
#include "cairn/reply.h"
#include "cairn/score.h"
#include "cairn/server.h"
#include "cairn/status.h"
#include "cairn/text.h"

#endif
