/* Split rules of well-known families, as their tokenizer.json spells them: scan.c has an equal of
   most, tok_gguf_pre.c knows which name means which. */
#ifndef TEXT_RULES_H
#define TEXT_RULES_H

#define RULE_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define RULE_TAIL         "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define RULE_LEAD         "[^\\r\\n\\p{L}\\p{N}]?"
#define RULE_CASED_U      "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define RULE_CASED_W      "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define RULE_CASED_1      RULE_LEAD RULE_CASED_U "*" RULE_CASED_W "+"
#define RULE_CASED_2      RULE_LEAD RULE_CASED_U "+" RULE_CASED_W "*"

#define RULE_GPT2                                                                                  \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define RULE_LLAMA3                                                                                \
    RULE_CONTRACTIONS "|" RULE_LEAD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" RULE_TAIL
#define RULE_QWEN2                                                                                 \
    RULE_CONTRACTIONS "|" RULE_LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" RULE_TAIL
#define RULE_QWEN35                                                                                \
    RULE_CONTRACTIONS "|" RULE_LEAD                                                                \
                      "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" RULE_TAIL
#define RULE_O200K                                                                                 \
    RULE_CASED_1 RULE_CONTRACTIONS "?|" RULE_CASED_2 RULE_CONTRACTIONS                             \
                                   "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" RULE_TAIL
#define RULE_YOUTU                                                                                 \
    RULE_CASED_1 RULE_CONTRACTIONS "?|" RULE_CASED_2 RULE_CONTRACTIONS                             \
                                   "?|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" RULE_TAIL
#define RULE_TEKKEN                                                                                \
    RULE_CASED_1 "|" RULE_CASED_2 "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" RULE_TAIL
#define RULE_ASCII_WORD "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define RULE_DEEPSEEK3                                                                             \
    RULE_ASCII_WORD "|[^\r\n\\p{L}\\p{P}\\p{S}]?"                                                  \
                    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
#define RULE_HAN_KANA "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
#define RULE_BAILING                                                                               \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"  \
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define RULE_CL100K                                                                                \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++"     \
    "[\\r\\n]*+|\\s++\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"
#define RULE_KIMI_U "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define RULE_KIMI_W "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define RULE_KIMI                                                                                  \
    "[\\p{Han}]+|" RULE_LEAD RULE_KIMI_U "*" RULE_KIMI_W "+" RULE_CONTRACTIONS                     \
    "?|" RULE_LEAD RULE_KIMI_U "+" RULE_KIMI_W "*" RULE_CONTRACTIONS                               \
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" RULE_TAIL
/* Digits in threes, counted from the end of their run; _B: only where a word ends there. */
#define RULE_DIGIT_GROUPS   "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))"
#define RULE_DIGIT_GROUPS_B "\\d{1,3}(?=(?:\\d{3})*\\b)"
#define RULE_GROUP_STARTS   "(?=(\\d{3})+(?!\\d))" /* the places between such threes */

#endif
