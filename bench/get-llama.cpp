#!/usr/bin/env bash
# Builds llama.cpp, the peer that speed and accuracy are measured against: from the source package of
# llama-cpp-python 0.3.36, natively, in a folder outside the repository.  Prints that folder; at once
# when it was built before.  Needs cmake and g++.
#   bench/get-llama.cpp [PROGRAM...]    others besides: llama-server
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${CAIRN_LLAMA_CPP:-${XDG_CACHE_HOME:-$HOME/.cache}/cairn/llama.cpp}
src=$home/src bin=$home/build/bin
programs=(llama-bench llama-batched-bench "$@")
have_all() {
    local p
    for p in "${programs[@]}"; do [ -x "$bin/$p" ] || return 1; done
}
get_source() {
    mkdir -p "$home"
    tmp=$(mktemp -d "$home/get.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    python3 -m pip download -q --no-deps --no-binary :all: -d "$tmp" llama-cpp-python==0.3.36 >&2
    tar -xf "$tmp"/llama_cpp_python-*.tar.gz -C "$tmp"
    rm -rf "$src"
    mv "$tmp"/llama_cpp_python-*/vendor/llama.cpp "$src"
    # gcc before 13 thinks that _tile_loadconfig reads 8 bytes and drops the stores to the others: a fault where
    # there is AMX.
    sed -i 's/^    _tile_loadconfig(&tc);/    __asm__ volatile("" : : "r"(\&tc) : "memory");\n&/' \
        "$src/ggml/src/ggml-cpu/amx/mmq.cpp"
}
if ! have_all; then
    [ -f "$src/CMakeLists.txt" ] || get_source
    cmake -S "$src" -B "$home/build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=ON >&2
    cmake --build "$home/build" --target "${programs[@]}" -j "$(nproc)" >&2
fi
if [ ! -x "$home/llama_logits" ] || [ "$here/llama_logits.c" -nt "$home/llama_logits" ]; then
    gcc -O2 -I"$src/include" -I"$src/ggml/include" -o "$home/llama_logits" "$here/llama_logits.c" \
        -L"$bin" -lllama -lggml -lggml-base -Wl,-rpath,"$bin" >&2
fi
echo "$home"
