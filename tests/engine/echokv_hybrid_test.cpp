// EchoKV's hybrid (ThinK's keys, EchoKV's values) compared with its definition in transformers and NumPy, f64
// (scripts/golden/echokv_hybrid.py).
#include <catch2/catch.hpp>

#include "tests/engine/reference_runs.h"
#include "tests/policies/echo_maps_file.h"

using namespace kvscope;
using namespace kvscope::engine::testing;
using policies::EchoLayout;
using policies::test::EchoMapsFile;

namespace {

EchoMapsFile maps_for(const engine::Model& model, int group, int local) {
    const auto shape = model.transformer().shape();
    return EchoMapsFile(EchoLayout{shape.n_layers, shape.n_kv_heads, shape.head_dim, group, local},
                        model.fingerprint());
}

}  // namespace

TEST_CASE("EchoKV's hybrid has the reference's output, channels and bytes", "[echokv][arithmetic][default_model]") {
    const auto& model = default_model_f32();
    const int head_dim = model.transformer().shape().head_dim;
    std::vector<std::unique_ptr<EchoMapsFile>> files;
    const auto plan_of = [&](const nlohmann::json& one) {
        files.emplace_back(new EchoMapsFile(maps_for(model, one["group_layers"], one["local_dims"])));
        auto made =
            plan("echokv-hybrid:maps=" + files.back()->path() + ",recent=" + std::to_string(one["recent"].get<int>()),
                 "100%");
        made.budget.share = *made.spec.own_share();
        return made;
    };
    const auto check_bytes = [&](const trace::RunRecord& record, const nlohmann::json& one) {
        const int local = one["local_dims"];
        const auto rebuilt = one["rebuilt_layers"].get<std::vector<size_t>>();
        const auto& channels = one["kept_channels"];
        for (size_t layer = 0; layer < record.cache_bytes.size(); ++layer) {
            const bool is_rebuilt = std::count(rebuilt.begin(), rebuilt.end(), layer) > 0;
            size_t named = is_rebuilt ? static_cast<size_t>(local % head_dim) : 0;  // first channel of the values
            for (size_t head = 0; head < channels[layer].size(); ++head) {
                const auto expected = channels[layer][head].get<std::vector<size_t>>();
                named += expected.size();
                std::vector<size_t> found;
                const size_t first = (layer * channels[layer].size() + head) * static_cast<size_t>(head_dim);
                for (size_t c = 0; c < static_cast<size_t>(head_dim); ++c)
                    if (record.channels_kept[first + c]) found.push_back(c);
                CHECK(found == expected);
            }
            CHECK(record.cache_bytes[layer] ==
                  one["bytes"][layer].get<uint64_t>() * sizeof(float) + named * sizeof(uint16_t));
        }
    };
    check_reference_runs("engine/echokv_hybrid_runs.json", plan_of, check_bytes);
}

TEST_CASE("EchoKV's hybrid gives the same answers in both modes and with any other runs", "[echokv]") {
    for (const char* name : {"llama3-gqa-sharded", "mistral-window", "qwen2-sliding-yarn"}) {
        const auto model = small_model(name, kernels::DType::f32);
        const auto maps = maps_for(model, 2, 4);
        check_independence(
            name, {"echokv-hybrid:recent=9,maps=" + maps.path(), "echokv-hybrid:recent=0,maps=" + maps.path()}, "75%");
    }
}
