/* Open a model, ask its shape and size, read its tensors.  A model is immutable once open and may
   be used from any thread; it must outlive the engines made from it. */
#ifndef CAIRN_MODEL_H
#define CAIRN_MODEL_H

#include "cairn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_model cairn_model;

enum {
    CAIRN_MAX_CTX = 1 << 24, /* positions; beyond the context of any model known */
    CAIRN_MAX_THREADS = 1023 /* what a pool of workers can count */
};
struct cairn_text;

/* FAST: what serving uses (8-bit activations for quantised weights, f16 caches).
   F32: activations and caches stay f32, weights at their stored value; compared with references. */
typedef enum cairn_compute { CAIRN_COMPUTE_FAST, CAIRN_COMPUTE_F32 } cairn_compute;

typedef struct cairn_model_opts {
    uint32_t struct_size; /* set by cairn_model_opts_init */
    cairn_compute compute;
    int32_t n_threads; /* at most CAIRN_MAX_THREADS; 0: one for each core this process may use */
    bool no_weights;   /* open headers only: shapes, tensors, text; no engine can be made */
    bool no_text;      /* neither tokenizer nor chat template: cairn_model_text is NULL */
    uint64_t memory_limit; /* bytes; 0: what the machine (and its cgroup) has available */
    /* What caches hold (docs/cache.md): "f16", "q8", "k8v4", …, or the path of a kv_config.json; NULL: f16, or
       f32 under F32 compute, as it is for vectors always. */
    const char *kv_codec;
    /* Asked before each weight is loaded, on the thread of cairn_model_open; false: opening ends with E_CANCELLED.
       NULL: it goes on. */
    bool (*go_on)(void *ctx);
    void *go_on_ctx;
} cairn_model_opts;

typedef struct cairn_model_info {
    uint32_t struct_size; /* set by cairn_model_info_init */
    /* "gguf", "safetensors"; lives as long as the model, like every pointer here */
    const char *format;
    /* the file's own word: general.architecture, or model_type ("llama", "qwen2", "gemma3_text") */
    const char *family;
    const char *name;  /* the file's own name for itself, or its file name */
    const char *quant; /* dominant weight type by bytes, e.g. "Q4_1" */
    int32_t n_layer, hidden, n_head, n_kv_head, head_dim, vocab, ctx_train;
    uint64_t n_params;
    uint64_t file_bytes;        /* tensor data on disk */
    uint64_t resident_bytes;    /* weights as held in memory; 0 with no_weights */
    uint64_t token_bytes;       /* file bytes that decoding one token must read */
    uint64_t cache_bytes_token; /* cache bytes a position takes in full-attention layers */
    /* Cache bytes that windowed layers take at most, a sequence: window and step, in whole blocks. */
    uint64_t cache_bytes_window;
    double load_seconds;
    int32_t n_threads;
    const char *isa;        /* level of the kernels in use, e.g. "avx2" */
    uint64_t matmul_params; /* elements of all matrices that rows are multiplied with */
    uint64_t head_params;   /* of those, the head's: once for each row whose logits are wanted */
    uint64_t cache_bytes_state; /* recurrent state of one sequence */
    /* What opening with weights takes, and holds against memory_limit: file bytes, and what packed
       forms take beyond them.  Known with no_weights too. */
    uint64_t loaded_bytes;
    const char *kv_codec; /* what caches hold, in the one text of its scheme */
} cairn_model_info;

typedef struct cairn_tensor_info {
    const char *name;
    const char *type; /* "F32", "Q4_K", ... */
    int32_t n_dim;
    int64_t dim[4]; /* outermost first; the last is contiguous */
    uint64_t bytes;
} cairn_tensor_info;

CAIRN_API void cairn_model_opts_init(cairn_model_opts *o);

/* `path`: a directory (config.json beside safetensors) or a .gguf file (any part of a split set).
   `o` may be NULL.  A model that cannot fit is refused with the sum before its weights are read. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_model_open(const char *path, const cairn_model_opts *o,
                                                       cairn_model **out, cairn_diag *dg);
CAIRN_API void cairn_model_close(cairn_model *m); /* NULL is fine */

CAIRN_API void cairn_model_info_init(cairn_model_info *info);
/* Writes the first info->struct_size bytes: what the caller's version of the struct has. */
CAIRN_API void cairn_model_get_info(const cairn_model *m, cairn_model_info *info);
/* Cache bytes that a sequence of n_pos positions takes at its worst moment, in an engine with the
   default codec and step; exact. */
CAIRN_API uint64_t cairn_model_cache_bytes(const cairn_model *m, int32_t n_pos);

/* The model's tokenizer and template, borrowed; NULL when its files hold none. */
CAIRN_API const struct cairn_text *cairn_model_text(const cairn_model *m);

CAIRN_API size_t cairn_model_n_tensors(const cairn_model *m);
/* i < cairn_model_n_tensors: asserted. */
CAIRN_API void cairn_model_tensor(const cairn_model *m, size_t i, cairn_tensor_info *out);
/* Dequantised values of the tensor `name`, f32, row-major; `n` must be its element count. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_model_read_tensor(const cairn_model *m,
                                                              const char *name, float *out,
                                                              size_t n, cairn_diag *dg);
/* Resolve a MODEL word of the command line (path, or a registered name such as "smollm2") to a
   path; the caller frees.  CAIRN_E_NOTFOUND with the way to fetch it when it is not on disk. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_model_resolve(const char *word, cairn_bytes *path,
                                                          cairn_diag *dg);

#ifdef __cplusplus
}
#endif
#endif
