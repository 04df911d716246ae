// CommonKV against its definition in transformers and NumPy, f64: scripts/golden/commonkv.py.
#include <catch2/catch.hpp>

#include "tests/engine/reference_runs.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

TEST_CASE("what CommonKV does to the output equals the reference, and its bytes are those of what it stores",
          "[commonkv]") {
    check_reference_runs("engine/commonkv_runs.json",
                         [](const nlohmann::json& one) { return plan(one["policy"], "100%"); });
}

TEST_CASE("CommonKV answers alike in shared and isolated mode, whatever runs beside it, in f32 and bf16",
          "[commonkv]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"})
        check_company(name, {"commonkv:recent=9,layer_step=2", "commonkv:recent=9,layer_step=2,scope=group"}, "0.7");
}
