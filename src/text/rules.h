/* Split rules of well-known families, as their tokenizer.json spells them: scan.c has an equal of
   most, tok_gguf.c knows which name means which. */
#ifndef TEXT_RULES_H
#define TEXT_RULES_H

#define RULE_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define RULE_TAIL         "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define RULE_LEAD         "[^\\r\\n\\p{L}\\p{N}]?"
#define RULE_CASED_U      "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define RULE_CASED_W      "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

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
    RULE_LEAD RULE_CASED_U "*" RULE_CASED_W "+" RULE_CONTRACTIONS "?|" RULE_LEAD RULE_CASED_U      \
                           "+" RULE_CASED_W "*" RULE_CONTRACTIONS                                  \
                           "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" RULE_TAIL
#define RULE_DEEPSEEK3                                                                             \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"             \
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
#define RULE_HAN_KANA "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"

#endif
