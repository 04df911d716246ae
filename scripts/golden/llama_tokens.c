/* Prints llama.cpp's token ids for the text on standard input: llama_tokens MODEL.gguf ADD_SPECIAL PARSE_SPECIAL */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>

static void drop(enum ggml_log_level level, const char* text, void* data) {
    (void)level;
    (void)text;
    (void)data;
}

int main(int argc, char** argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL.gguf ADD_SPECIAL PARSE_SPECIAL < TEXT\n", argv[0]);
        return 2;
    }
    llama_log_set(drop, NULL);
    struct llama_model_params parameters = llama_model_default_params();
    parameters.vocab_only = true;
    struct llama_model* model = llama_model_load_from_file(argv[1], parameters);
    if (model == NULL) {
        fprintf(stderr, "%s cannot be read\n", argv[1]);
        return 1;
    }
    enum { most = 1 << 20 };
    char* text = malloc(most);
    llama_token* ids = malloc(most * sizeof *ids);
    const int length = (int)fread(text, 1, most, stdin);
    const int count =
        llama_tokenize(llama_model_get_vocab(model), text, length, ids, most, atoi(argv[2]) != 0, atoi(argv[3]) != 0);
    for (int i = 0; i < count; ++i) printf("%d\n", ids[i]);
    free(ids);
    free(text);
    llama_model_free(model);
    return count < 0;
}
