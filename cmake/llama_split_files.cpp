// llama.cpp's model loader names two functions that find a model's further files; they stand in a source that draws in
// every model architecture. kvscope hands the loader metadata alone, which is never split.
#include <llama.h>

#include <cstdlib>

int32_t llama_split_path(char*, size_t, const char*, int32_t, int32_t) { std::abort(); }
int32_t llama_split_prefix(char*, size_t, const char*, int32_t, int32_t) { std::abort(); }
