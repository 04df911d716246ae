#include "engine/checkpoint/model_name.h"

#include <catch2/catch.hpp>

using namespace kvscope::checkpoint;

TEST_CASE("a GGUF model has the metadata's name if the file's name agrees") {
    CHECK(name_of_gguf("m/SmolLM2-135M-Instruct-Q8_0.gguf", "SmolLM2 135M Instruct") == "SmolLM2 135M Instruct");
    CHECK(name_of_gguf("qwen2.5-0.5b-instruct-q4_k_m.gguf", "Qwen2.5 0.5B Instruct") == "Qwen2.5 0.5B Instruct");
}

TEST_CASE("a training label is replaced by the file's name") {
    CHECK(name_of_gguf("SmolLM2-135M-Instruct.Q4_1.gguf", "Smollm2 135M 8k Lc100K Mix1 Ep2") ==
          "SmolLM2-135M-Instruct.Q4_1");
    CHECK(name_of_gguf("Llama-3.2-1B.gguf", "hf_checkpoint_4711") == "Llama-3.2-1B");
}

TEST_CASE("a generic file name is replaced by the metadata's name") {
    for (const char* file : {"model.gguf", "ggml-model-q4_0.gguf", "ggml-model-f16.gguf", "model-00001-of-00003.gguf",
                             "model.IQ2_XXS.gguf"})
        CHECK(name_of_gguf(file, "Meta Llama 3 8B") == "Meta Llama 3 8B");
    CHECK(name_of_gguf("model.gguf", "") == "model");
    CHECK(name_of_gguf("model.gguf", " - ") == "model");
}

TEST_CASE("a directory's model has the folder's name, and a hub snapshot the repository's") {
    CHECK(name_of_directory("/somewhere/SmolLM2-135M") == "SmolLM2-135M");
    CHECK(name_of_directory("/somewhere/SmolLM2-135M/.") == "SmolLM2-135M");
    CHECK(name_of_directory("/hub/models--org--SmolLM2-135M/snapshots/0a1b2c") == "SmolLM2-135M");
    CHECK(name_of_directory("/hub/elsewhere/snapshots/0a1b2c") == "0a1b2c");
}
