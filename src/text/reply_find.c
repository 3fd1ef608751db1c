/* Which family a template belongs to: by the markers that it writes, the more special ones first.
   The rows were checked against real templates by tests/text/test_reply_golden.c. */
#include "base/str.h"
#include "text/reply.h"

enum { FIND_MAX = 3 };

static const struct {
    const char *family;
    const char *has[FIND_MAX]; /* all of them */
} markers[] = {
    {"gemma4", {"<|tool_call>call:"}},
    {"gemma4", {"<|channel>", "<channel|>"}},
    {"functiongemma", {"<start_function_call>"}},
    {"harmony", {"<|channel|>", "<|message|>"}},
    {"muse", {"<atem:function_calls>"}},
    {"kimi-k2", {"<|tool_calls_section_begin|>"}},
    {"kimi-k3", {"<|open|>", "<|close|>", "<|end_of_msg|>"}},
    {"dsml", {"｜DSML｜"}},
    {"dsml", {"dsml_token"}},
    {"cohere", {"<|START_ACTION|>"}},
    {"cohere", {"<|START_RESPONSE|>"}},
    {"command-r", {"Action:", "```json", "tool_name"}},
    {"solar", {"<|tool_call:begin|>", "<|tool_calls|>"}},
    {"hunyuan3", {":opensource", "tool_sep"}},
    {"minimax-m2", {"<minimax:tool_call>"}},
    {"seed-oss", {"seed:think"}},
    {"seed-oss", {"<seed:tool_call>"}},
    {"longcat", {"longcat_tool_call"}},
    {"glm", {"<arg_key>"}},
    {"deepseek", {"tool▁calls▁begin"}},
    {"deepseek", {"<｜Assistant｜>"}},
    {"apertus", {"<|tools_prefix|>"}},
    {"lfm2", {"<|tool_call_start|>"}},
    {"lfm2", {"<|tool_list_start|>"}},
    {"lfm2", {"List of tools: ["}},
    {"mistral", {"[TOOL_CALLS]"}},
    {"mistral", {"[THINK]"}},
    {"functionary", {">>>all"}},
    {"functionary", {">>>", "recipient"}},
    {"nemotron", {"<TOOLCALL>"}},
    {"apriel", {"[BEGIN FINAL RESPONSE]"}},
    {"firefunction", {"functools["}},
    {"gigachat", {"<|role_sep|>", "<|message_sep|>"}},
    {"internlm", {"<|action_start|>"}},
    {"minicpm5", {"<function name=\"", "<param name=\""}},
    {"granite", {"<|start_of_role|>", "<|tool_call|>"}},
    {"phi4", {"<|tool_call|>"}},
    {"phi4", {"<|tool|>", "<|assistant|>"}},
    {"minimax-m3", {"]<]minimax[>["}},
    {"ernie", {"<response>", "<tool_call>"}},
    {"tool-calls", {"<tool_calls>"}},
    {"qwen3-coder", {"<function=", "<parameter="}},
    {"hermes", {"<tool_call>"}},
    {"llama3", {"<|start_header_id|>"}},
    {"llama3", {"<|header_start|>"}},
    {"llama3", {"<|python_tag|>"}},
};

/* Of a model's type or name; letters of either case, '-' as '_'. */
static const struct {
    const char *part;
    const char *family;
} hints[] = {
    {"gemma4", "gemma4"},
    {"functiongemma", "functiongemma"},
    {"gpt_oss", "harmony"},
    {"gptoss", "harmony"},
    {"qwen3_coder", "qwen3-coder"},
    {"qwen3_5", "qwen3-coder"},
    {"qwen", "hermes"},
    {"hermes", "hermes"},
    {"smollm", "hermes"},
    {"granite4", "hermes"},
    {"granitemoehybrid", "hermes"},
    {"granitehybrid", "hermes"},
    {"granite", "granite"},
    {"mistral", "mistral"},
    {"deepseek_v32", "dsml"},
    {"deepseek", "deepseek"},
    {"glm", "glm"},
    {"kimi_k3", "kimi-k3"},
    {"kimi", "kimi-k2"},
    {"longcat", "longcat"},
    {"internlm", "internlm"},
    {"nemotron", "nemotron"},
    {"solar_open", "solar"},
    {"gigachat", "gigachat"},
    {"minimax_m3", "minimax-m3"},
    {"minimax", "minimax-m2"},
    {"cohere", "cohere"},
    {"command_r", "command-r"},
    {"seed_oss", "seed-oss"},
    {"ernie", "ernie"},
    {"hunyuan", "tool-calls"},
    {"apertus", "apertus"},
    {"lfm2", "lfm2"},
    {"phi", "phi4"},
    {"functionary", "functionary"},
};

static bool has(cairn_str hay, const char *z)
{
    return str_find(hay, str_of(z), 0) != SIZE_MAX;
}

static char plain(char c)
{
    if (c == '-' || c == '.') return '_';
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool hint_has(cairn_str hint, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= hint.len; i++) {
        size_t k = 0;
        while (k < n && plain(hint.ptr[i + k]) == part[k]) k++;
        if (k == n) return true;
    }
    return false;
}

const tool_family *reply_find_family(cairn_str template_text, cairn_str hint)
{
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        size_t k = 0;
        while (k < FIND_MAX && markers[i].has[k] && has(template_text, markers[i].has[k])) k++;
        if (k == FIND_MAX || !markers[i].has[k]) return tool_family_find(markers[i].family);
    }
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (hint_has(hint, hints[i].part)) return tool_family_find(hints[i].family);
    /* So are models of many makers called: their templates, if not Meta's own, say more. */
    if (!template_text.len && hint_has(hint, "llama")) return tool_family_find("llama3");
    return tool_family_find("generic");
}
