/* Tools of a chat's body, and which of them the model may call. */
#ifndef SERVE_OPENAI_TOOLS_H
#define SERVE_OPENAI_TOOLS_H

#include "serve/openai_read.h"

enum { OPENAI_MOST_NAME = 64 }; /* bytes, of a tool's name */

/* `tools` of the body, checked, into a->tools, unless tool_choice is "none"; nothing if there are none.  by_openai: names
   are as its API has them, none twice; its own tools are left out; those that are custom are a->custom too; and those
   alone that a choice allows are rendered. */
cairn_status chat_tools_read(json_val root, bool by_openai, chat_ask *a, chat_fault *f);
/* Whether `tool_choice` is one that there can be: E_ARG.  It may still be one that is not done here. */
cairn_status chat_choice_check(json_val root, chat_fault *f);
bool chat_choice_fine(
    json_val choice); /* none, auto, or allowed tools of which any may be called */
/* A type of tool that OpenAI runs, or whose calls have a form of their own, as a static text; NULL: it is none. */
const char *openai_own_tool(cairn_str type);

#endif
