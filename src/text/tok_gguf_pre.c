/* Owns the split rules behind the names of `tokenizer.ggml.pre`.  Rules are the ones of the model's
   own tokenizer; where llama.cpp, whose list of names this is, has a nearer or rougher spelling
   (ASCII case only, classes folded together), the model's own counts, for it is what the model was
   trained with.  A name that is not here is an error elsewhere: a nearly right split is wrong. */
#include "text/rules.h"
#include "text/tok_gguf.h"

/* The letters of deepseek-llm: cased ones, spelt out as ranges. */
#define CASED_LETTERS                                                                              \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"   \
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"           \
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"               \
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"               \
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"          \
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"         \
    "\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"          \
    "\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"                 \
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"           \
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"               \
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"                    \
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"         \
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
#define HAN_HANGUL "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
#define LINES      "[^\\n]+|[\\n]+"
/* bloom and its kin: words up to white space and a few marks */
#define BLOOM_WORDS " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
#define ASIAN                                                                                      \
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf" \
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"  \
    "\u1100-\u11ff]+"
#define YOUTU_CJK                                                                                  \
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"  \
    "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|" RULE_HAN_KANA
#define SHRINKING_BLANKS                                                                           \
    "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|"              \
    "\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"
#define MARKS "[^\\s\\p{L}\\p{N}]+"
#define SPARK                                                                                      \
    RULE_ASCII_WORD "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|"         \
                    "\\s+(?!\\S)|\\s+"
#define DIGITS  "\\p{N}"
#define DIGITS3 "\\p{N}{1,3}"

enum { MERGES = GGUF_IGNORE_MERGES, BOS = GGUF_ADD_BOS, TEXT = GGUF_TEXT, SPACED = GGUF_SPACED };

static const gguf_pre pre[] = {
    {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", RULE_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, 0},
    {"gpt-2", {RULE_GPT2}, 0},
    {"phi-2", {RULE_GPT2}, 0},
    {"jina-es", {RULE_GPT2}, 0},
    {"jina-de", {RULE_GPT2}, 0},
    {"jina-v1-en", {RULE_GPT2}, 0},
    {"jina-v2-es", {RULE_GPT2}, 0},
    {"jina-v2-de", {RULE_GPT2}, 0},
    {"jina-v2-code", {RULE_GPT2}, 0},
    {"roberta-bpe", {RULE_GPT2}, 0},
    {"a.x-4.0", {RULE_GPT2}, 0},
    {"mpt", {RULE_GPT2}, 0},
    {"olmo", {RULE_GPT2}, 0},
    {"jais", {RULE_GPT2}, 0},
    {"exaone4", {RULE_GPT2}, 0},
    {"gigachat", {RULE_GPT2}, 0},
    {"mellum", {RULE_GPT2}, 0},
    {"modern-bert", {RULE_GPT2}, 0},
    {"trillion", {RULE_GPT2}, 0},
    {"granite-docling", {RULE_GPT2}, 0},
    {"smollm", {DIGITS, RULE_GPT2}, 0},
    {"starcoder", {DIGITS, RULE_GPT2}, 0},
    {"refact", {DIGITS, RULE_GPT2}, 0},
    {"command-r", {DIGITS, RULE_GPT2}, 0},
    {"codeshell", {DIGITS, RULE_GPT2}, 0},
    {"exaone", {DIGITS, RULE_GPT2}, 0},
    {"minerva-7b", {DIGITS, RULE_GPT2}, 0},
    {"mellum2", {DIGITS, RULE_GPT2}, 0},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", RULE_GPT2, "[0-9][0-9][0-9]"}, 0},
    {"chameleon",
     {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", DIGITS,
      "[\\p{P}!-/:-@\\[-`{-~]", RULE_GPT2},
     BOS},
    {"llama-bpe", {RULE_LLAMA3}, MERGES | BOS},
    {"llama3", {RULE_LLAMA3}, MERGES | BOS},
    {"llama-v3", {RULE_LLAMA3}, MERGES | BOS},
    {"falcon3", {RULE_LLAMA3}, MERGES | BOS},
    {"falcon-h1", {RULE_LLAMA3}, MERGES | BOS},
    {"pixtral", {RULE_LLAMA3}, MERGES | BOS},
    {"midm-2.0", {RULE_LLAMA3}, MERGES | BOS},
    {"lfm2", {RULE_LLAMA3}, MERGES | BOS},
    {"jina-v5-nano", {RULE_LLAMA3}, MERGES | BOS},
    {"dbrx", {RULE_LLAMA3}, 0},
    {"smaug-bpe", {RULE_LLAMA3}, 0},
    {"chatglm-bpe", {RULE_LLAMA3}, 0},
    {"glm4", {RULE_LLAMA3}, MERGES},
    {"glm5", {RULE_LLAMA3}, MERGES},
    {"jais-2",
     {RULE_CONTRACTIONS "|" RULE_LEAD "\\p{L}+|" DIGITS3 "| ?" MARKS
                        "[\\r\\n]*|\\s*[\\r\\n]+" SHRINKING_BLANKS},
     0},
    {"minicpm5",
     {DIGITS3, RULE_CONTRACTIONS "|" RULE_LEAD "\\p{L}+|\\p{N}+| ?" MARKS "[\\r\\n]*" RULE_TAIL},
     MERGES},
    {"qwen2", {RULE_QWEN2}, 0},
    {"deepseek-r1-qwen", {RULE_QWEN2}, 0},
    {"kormo", {RULE_QWEN2}, 0},
    {"f2llmv2", {RULE_QWEN2}, 0},
    {"stablelm2", {RULE_QWEN2}, 0},
    {"hunyuan", {RULE_QWEN2}, 0},
    {"megrez", {RULE_QWEN2}, 0},
    {"grok-2", {RULE_QWEN2}, 0},
    {"solar-open", {RULE_QWEN2}, 0},
    {"laguna", {LINES, RULE_QWEN2}, 0},
    {"qwen35", {RULE_QWEN35}, 0},
    {"ufakzeka", {RULE_LEAD "\\p{L}+|" DIGITS "| ?" MARKS "[\\r\\n]*" RULE_TAIL}, 0},
    {"bailingmoe", {RULE_BAILING}, 0},
    {"bailingmoe2", {RULE_BAILING}, 0},
    {"llada-moe", {RULE_BAILING}, 0},
    {"seed-coder",
     {RULE_CONTRACTIONS "|" RULE_LEAD "\\p{L}+|" DIGITS "| ?[^\\s\\p{L}\\p{N}\\r\\n]+" RULE_TAIL},
     0},
    {"exaone-moe",
     {RULE_CONTRACTIONS "|" RULE_LEAD "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|" DIGITS "| ?" MARKS
                        "[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
     0},
    {"deepseek-llm",
     {"[\r\n]", "\\s?[" CASED_LETTERS "]+",
      "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$", HAN_HANGUL,
      "\\p{N}+"},
     0},
    {"deepseek-coder", {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_HANGUL, DIGITS}, 0},
    {"deepseek-v3", {DIGITS3, RULE_HAN_KANA, RULE_DEEPSEEK3}, 0},
    {"hunyuan-dense", {DIGITS3, RULE_HAN_KANA, RULE_DEEPSEEK3}, 0},
    {"joyai-llm", {DIGITS3, RULE_HAN_KANA, RULE_DEEPSEEK3}, 0},
    {"hy_v4", {DIGITS3, RULE_HAN_KANA, RULE_DEEPSEEK3}, 0},
    {"spark2_5", {DIGITS3, RULE_HAN_KANA, SPARK, DIGITS}, 0},
    {"afmoe", {RULE_DIGIT_GROUPS, ASIAN, RULE_DEEPSEEK3}, 0},
    {"gpt-4o", {RULE_O200K}, 0},
    {"llama4", {RULE_O200K}, 0},
    {"kanana2", {RULE_O200K}, 0},
    {"talkie", {RULE_O200K}, 0},
    {"minimax-m2", {RULE_O200K}, 0},
    {"granite-embed-multi-97m", {RULE_O200K}, MERGES},
    {"tiny_aya", {RULE_DIGIT_GROUPS_B, RULE_O200K}, 0},
    {"cohere2moe", {RULE_DIGIT_GROUPS_B, RULE_O200K}, 0},
    {"youtu", {YOUTU_CJK, RULE_YOUTU}, MERGES},
    {"tekken", {RULE_TEKKEN}, MERGES | BOS},
    {"kimi-k2", {RULE_KIMI}, 0},
    {"superbpe", {"\\p{N}+", RULE_GROUP_STARTS}, 0},
    {"bloom", {BLOOM_WORDS}, 0},
    {"gpt3-finnish", {BLOOM_WORDS}, 0},
    {"poro-chat", {BLOOM_WORDS}, 0},
    {"viking", {BLOOM_WORDS, DIGITS}, 0},
    {"gemma4", {LINES}, BOS | TEXT | SPACED},
    {"granite-embed-multi-311m", {LINES}, BOS | TEXT | SPACED},
    {"sarvam-moe", {LINES}, TEXT | SPACED},
    {"whitespace", {"\\S+"}, TEXT},
};

const gguf_pre *gguf_pre_find(cairn_str name)
{
    for (size_t i = 0; i < sizeof pre / sizeof pre[0]; i++)
        if (str_is(name, pre[i].name)) return &pre[i];
    return NULL;
}
