// llama.cpp's DRY sampler with breakers given as token ids, as its own tests make it: its C interface takes
// strings and a vocabulary.  Built by make_samplers.py.
#include <cstdint>
#include <vector>

struct llama_sampler;
llama_sampler *llama_sampler_init_dry_testing(float multiplier, float base, int32_t allowed, int32_t last_n,
                                              const std::vector<std::vector<int32_t>> &breakers);

// n breakers of len[i] ids each, one behind the other.
extern "C" llama_sampler *make_dry(float multiplier, float base, int32_t allowed, int32_t last_n,
                                   const int32_t *ids, const int32_t *len, int32_t n)
{
    std::vector<std::vector<int32_t>> breakers;
    for (int32_t i = 0; i < n; ids += len[i++]) breakers.emplace_back(ids, ids + len[i]);
    return llama_sampler_init_dry_testing(multiplier, base, allowed, last_n, breakers);
}
