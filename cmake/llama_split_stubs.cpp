// llama.cpp's model loader needs two functions for split models. Their source would require all model architectures.
// kvscope passes only metadata to the loader, which is never split.
#include <llama.h>

#include <cstdlib>

int32_t llama_split_path(char*, size_t, const char*, int32_t, int32_t) { std::abort(); }
int32_t llama_split_prefix(char*, size_t, const char*, int32_t, int32_t) { std::abort(); }
