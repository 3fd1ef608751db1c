/* The list of families. */
#include "text/tool/tool.h"

#include <string.h>

#define TOOL_FAMILIES(X)                                                                           \
    X(generic)                                                                                     \
    X(hermes)                                                                                      \
    X(qwen3_coder)                                                                                 \
    X(seed_oss)                                                                                    \
    X(minimax_m2)                                                                                  \
    X(minimax_m3)                                                                                  \
    X(minicpm5)                                                                                    \
    X(ernie)                                                                                       \
    X(llama3)                                                                                      \
    X(functionary)                                                                                 \
    X(lfm2)                                                                                        \
    X(mistral)                                                                                     \
    X(deepseek)                                                                                    \
    X(dsml)                                                                                        \
    X(glm)                                                                                         \
    X(longcat)                                                                                     \
    X(hunyuan3)                                                                                    \
    X(kimi_k2)                                                                                     \
    X(kimi_k3)                                                                                     \
    X(harmony)                                                                                     \
    X(muse)                                                                                        \
    X(solar)                                                                                       \
    X(gemma4)                                                                                      \
    X(functiongemma)                                                                               \
    X(granite)                                                                                     \
    X(phi4)                                                                                        \
    X(nemotron)                                                                                    \
    X(tool_calls)                                                                                  \
    X(apriel)                                                                                      \
    X(cohere)                                                                                      \
    X(command_r)                                                                                   \
    X(apertus)                                                                                     \
    X(firefunction)                                                                                \
    X(gigachat)                                                                                    \
    X(internlm)

#define TOOL_EXTERN(name) extern const tool_family tool_family_##name;
TOOL_FAMILIES(TOOL_EXTERN)
#undef TOOL_EXTERN

static const tool_family *const families[] = {
#define TOOL_ENTRY(name) &tool_family_##name,
    TOOL_FAMILIES(TOOL_ENTRY)
#undef TOOL_ENTRY
};

const tool_family *tool_family_at(size_t i)
{
    return i < sizeof families / sizeof families[0] ? families[i] : NULL;
}

const tool_family *tool_family_find(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i]->name, name) == 0) return families[i];
    return NULL;
}
