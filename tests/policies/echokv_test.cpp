#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "common/json.h"
#include "policies/registry/registry.h"
#include "policies/registry/validation.h"
#include "tests/policies/echo_maps_file.h"
#include "tests/policies/random_cache.h"
#include "tests/policies/stored_widths.h"

using namespace kvscope::policies;
using namespace kvscope::policies::test;
using Catch::Matchers::Contains;

namespace {

constexpr ModelShape model_shape{7, 6, 3, 16};
constexpr int64_t prompt_tokens = 60;

std::vector<Selection> select(const EchoMapsFile& file, const std::string& parameters, Cache& cache) {
    const auto policy = parse_policy("echokv:maps=" + file.path() + parameters).create();
    policy->begin(cache.context(prompt_tokens));
    std::vector<Selection> selections;
    for (const auto& layer : cache.observations) selections.push_back(policy->select(*layer));
    for (size_t layer = 0; layer < selections.size(); ++layer)
        require_valid_storage("echokv", static_cast<int>(layer), model_shape, selections[layer]);
    return selections;
}

/// A row's keys or values, rebuilt from the stored vectors of an entry.
std::vector<double> rebuilt(const StoredVectors& vectors, size_t entry, int d) {
    std::vector<double> sum(static_cast<size_t>(d), 0.0);
    for (const StoredPart& part : vectors.parts) {
        const auto width = static_cast<size_t>(part.width);
        for (size_t i = 0; i < width; ++i) {
            const double number = double{part.block->numbers[entry * static_cast<size_t>(part.block->width) +
                                                             static_cast<size_t>(part.first_column) + i]};
            if (!part.map) {
                sum[part.channels.empty() ? i : part.channels[i]] += number;
                continue;
            }
            for (size_t c = 0; c < sum.size(); ++c)
                sum[c] += number * double{part.map->numbers[i * static_cast<size_t>(d) + c]};
        }
    }
    return sum;
}

/// Number c of a token's D numbers by the definition, from the first layer's D and the layer's own first D_local.
double predicted(const EchoLayout& layout, const Matrix& map, const std::vector<float>& first,
                 const std::vector<float>& own, int64_t token, int c) {
    const auto number = [&](const std::vector<float>& of_layer, int at) {
        return double{of_layer[static_cast<size_t>((at / layout.head_dim * prompt_tokens + token) * layout.head_dim +
                                                   at % layout.head_dim)]};
    };
    if (c < layout.local) return number(own, c);
    double sum = 0;
    for (int i = 0; i < map.n_rows; ++i)
        sum += (i < layout.width() ? number(first, i) : number(own, i - layout.width())) *
               double{map.numbers[static_cast<size_t>(i * map.n_columns + c - layout.local)]};
    return sum;
}

}  // namespace

TEST_CASE("EchoKV's layouts equal those of its table", "[echokv]") {
    const ModelShape llama{32, 32, 8, 128};
    const auto is = [&](double ratio, int group, int local, double real) {
        const EchoLayout layout = echo_layout_for_ratio(ratio, llama);
        CHECK(layout.group == group);
        CHECK(layout.local == local);
        CHECK(layout.ratio() == Approx(real).epsilon(1e-3));
        CHECK(layout.model_ratio() == Approx(real).epsilon(1e-3));
    };
    is(0.7, 2, 384, 0.6875);
    is(0.5, 2, 0, 0.5);
    is(0.3, 4, 64, 0.297);
    is(1.0, 1, 0, 1.0);
    CHECK_THROWS_AS(echo_layout_for_ratio(0, llama), EchoMapsError);
    CHECK_THROWS_AS(echo_layout_for_ratio(1.1, llama), EchoMapsError);
    CHECK_THROWS_WITH(echo_layout_for_ratio(0.01, llama), Contains("groups of 100 layers"));
}

TEST_CASE("EchoKV's layouts are as close to a ratio as possible, whatever the size of the last group", "[echokv]") {
    // 30 layers in groups of 4 leave a group of 2.
    const EchoLayout small = echo_layout_for_ratio(0.3, {30, 9, 3, 64});
    CHECK(small.group == 4);
    CHECK(small.local == 8);
    CHECK(small.model_ratio() == Approx((8 * 192 + 22 * 8) / (30 * 192.0)));
    for (const ModelShape& shape : {ModelShape{30, 9, 3, 64}, {32, 32, 8, 128}, {28, 12, 2, 128}, {3, 4, 2, 16}})
        for (double ratio = 0.05; ratio <= 1.0; ratio += 0.05) {
            CAPTURE(shape.n_layers, ratio);
            if (ratio * shape.n_layers < 1) continue;
            const EchoLayout layout = echo_layout_for_ratio(ratio, shape);
            CHECK(std::abs(layout.model_ratio() - ratio) <= 0.015 + 1e-9);
            CHECK(layout.local >= 0);
            CHECK(layout.local <= layout.width());
        }
}

TEST_CASE("EchoKV stores the first layer of a group and rebuilds the others by the definition", "[echokv]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 4);
    for (const auto& [group, local] : {std::pair{2, 0}, {3, 16}, {4, 8}, {2, 40}}) {
        INFO("groups of " << group << ", " << local << " local");
        const EchoLayout layout{model_shape.n_layers, model_shape.n_kv_heads, model_shape.head_dim, group, local};
        const EchoMapsFile file(layout, "");
        const EchoMaps maps = formula_maps(layout, "");
        const auto selections = select(file, ",recent=10", cache);
        for (int layer = 0; layer < model_shape.n_layers; ++layer) {
            const Selection& selection = selections[static_cast<size_t>(layer)];
            const int first = layer - layer % group;
            if (first == model_shape.n_layers - 1) {
                CHECK_FALSE(selection.stored);  // a group of one layer
                continue;
            }
            REQUIRE(selection.stored);
            for (int head = 0; head < model_shape.n_kv_heads; ++head) {
                const StoredRow& row = selection.stored->rows[static_cast<size_t>(head)];
                REQUIRE(row.stored.size() == 1);
                CHECK(row.plain.size() == 14);
                const StoredEntries& entries = row.stored[0];
                CHECK(entries.positions.front() == 4);
                CHECK(entries.positions.back() == prompt_tokens - 11);
                CHECK(entries.keys.before_rope);
                for (const size_t entry : {size_t{0}, size_t{20}, entries.positions.size() - 1}) {
                    const auto keys = rebuilt(entries.keys, entry, 16), values = rebuilt(entries.values, entry, 16);
                    for (int c = 0; c < 16; ++c) {
                        const auto expected = [&](const Matrix& map, std::vector<float> Layer::*which) {
                            const auto& own = cache.layers[static_cast<size_t>(layer)].*which;
                            const auto token = int64_t{entries.positions[entry]};
                            if (layer == first)
                                return double{own[static_cast<size_t>((head * prompt_tokens + token) * 16 + c)]};
                            return predicted(layout, map, cache.layers[static_cast<size_t>(first)].*which, own, token,
                                             head * 16 + c);
                        };
                        const EchoMaps::Layer none;
                        const auto& of_layer = layer == first ? none : maps.layers.at(layer);
                        CHECK(keys[static_cast<size_t>(c)] ==
                              Approx(expected(of_layer.keys, &Layer::keys)).margin(1e-5));
                        CHECK(values[static_cast<size_t>(c)] ==
                              Approx(expected(of_layer.values, &Layer::values)).margin(1e-5));
                    }
                }
            }
            const auto summary = summarize_storage("echokv", layer, model_shape, prompt_tokens, selection, 2);
            const auto n = static_cast<uint32_t>(prompt_tokens - 14);
            // A head whose numbers are all local is not rebuilt.
            for (int head = 0; head < model_shape.n_kv_heads; ++head)
                CHECK(summary.n_stored[static_cast<size_t>(head)] ==
                      (layer == first || (head + 1) * 16 <= local ? 0u : n));
            const size_t numbers = 2 * (14 * 48 + n * static_cast<size_t>(layer == first ? 48 : local));
            CHECK(summary.bytes.total() >= numbers * 2);
            CHECK(summary.bytes.total() <= numbers * 2 + 3 * 2 * 16 * 2);  // plus the list of a head's own channels
            const auto rows = row_bytes_of(selection, 16, 2);
            CHECK(std::accumulate(rows.begin(), rows.end(), size_t{0}) == summary.bytes.total());
            check_widths(selection, summary, 16);
            // A head that is completely local has all its 16 numbers; the others share the rest.
            if (layer != first) CHECK(summary.key_width[0] <= static_cast<float>(local));
            const double sum = std::accumulate(summary.key_width.begin(), summary.key_width.end(), 0.0);
            CHECK(sum == Approx(layer == first ? 48 : local));
        }
    }
}

TEST_CASE("EchoKV can rebuild only keys or only values, and keeps short prompts exact", "[echokv]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 4);
    const EchoMapsFile file(EchoLayout{model_shape.n_layers, model_shape.n_kv_heads, model_shape.head_dim, 2, 0}, "");
    const auto of_values = select(file, ",recent=10,rebuild=values", cache);
    CHECK_FALSE(of_values[1].stored->rows[0].stored[0].keys.before_rope);
    CHECK_FALSE(of_values[1].stored->rows[0].stored[0].keys.parts[0].map);
    CHECK(of_values[1].stored->rows[0].stored[0].values.parts[0].map);
    CHECK(of_values[0].stored->blocks.size() == 1);
    const auto of_keys = select(file, ",recent=10,rebuild=keys", cache);
    CHECK(of_keys[1].stored->rows[0].stored[0].keys.parts[0].map);
    CHECK_FALSE(of_keys[1].stored->rows[0].stored[0].values.parts[0].map);
    for (const auto& selection : select(file, ",recent=56", cache)) CHECK_FALSE(selection.stored);
    const auto spec = parse_policy("echokv:maps=" + file.path());
    CHECK(*spec.own_share() == Approx((4 + 0) / 7.0));
    CHECK(*parse_policy("echokv:rebuild=keys,maps=" + file.path()).own_share() == Approx((1 + 4 / 7.0) / 2));
}

TEST_CASE("EchoKV refuses missing or damaged maps and those of another model, and names the reason", "[echokv]") {
    Cache cache = random_cache(model_shape, prompt_tokens, 4);
    const EchoLayout layout{model_shape.n_layers, model_shape.n_kv_heads, model_shape.head_dim, 2, 16};
    const std::string whole = to_safetensors(formula_maps(layout, ""));
    const auto begin = [&](const std::string& path, const char* fingerprint = "") {
        const auto policy = parse_policy("echokv" + (path.empty() ? "" : ":maps=" + path)).create();
        RunContext context = cache.context(prompt_tokens);
        context.model_fingerprint = fingerprint;
        policy->begin(context);
    };
    CHECK_THROWS_WITH(begin(""), Contains("kvscope train-echo"));
    CHECK_THROWS_WITH(begin("/nowhere/maps.safetensors"), Contains("/nowhere/maps.safetensors"));
    CHECK_NOTHROW(begin(EchoMapsFile(whole).path()));
    CHECK_THROWS_WITH(begin(EchoMapsFile(layout, "abc").path(), "def"), Contains("abc") && Contains("def"));
    CHECK_THROWS_WITH(begin(EchoMapsFile(EchoLayout{8, 3, 16, 2, 16}, "").path()), Contains("8 layers of 3 KV heads"));
    for (const size_t length : {size_t{0}, size_t{5}, size_t{40}, whole.size() - 1})
        CHECK_THROWS_AS(begin(EchoMapsFile(whole.substr(0, length)).path()), EchoMapsError);
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string other = whole;
        other.replace(other.find(from), from.size(), to);
        return other;
    };
    CHECK_THROWS_WITH(begin(EchoMapsFile(changed("\"F32\"", "\"F64\"")).path()), Contains("F64"));
    CHECK_THROWS_WITH(begin(EchoMapsFile(changed("maps-1", "maps-9")).path()), Contains("maps-9"));
    CHECK_THROWS_WITH(begin(EchoMapsFile(changed("layers.1.keys", "layers.9.keys")).path()), Contains("layers.1.keys"));
    std::string not_finite = whole;
    const float nan = NAN;
    std::memcpy(not_finite.data() + not_finite.size() - sizeof(nan), &nan, sizeof(nan));
    CHECK_THROWS_WITH(begin(EchoMapsFile(not_finite).path()), Contains("finite"));
    std::string long_header = whole;
    std::memset(long_header.data(), 0xff, 8);
    CHECK_THROWS_AS(begin(EchoMapsFile(long_header).path()), EchoMapsError);
}

TEST_CASE("EchoKV's maps that repeat the same bytes of the file are refused without reading them", "[echokv]") {
    // 2,000 layers, half of which name the same 16 KB: 32 MB from a file of 200 KB.
    const EchoLayout layout{2000, 4, 16, 2, 0};
    EchoMaps one = formula_maps(EchoLayout{2, 4, 16, 2, 0}, "f00d");
    const std::string small = to_safetensors(one);
    const std::string numbers = small.substr(small.size() - 2 * 64 * 64 * sizeof(float), 64 * 64 * sizeof(float));
    nlohmann::json header;
    header["__metadata__"] = {{"format", "kvscope-echo-maps-1"},
                              {"model_fingerprint", "f00d"},
                              {"n_layers", "2000"},
                              {"n_kv_heads", "4"},
                              {"head_dim", "16"},
                              {"group", "2"},
                              {"local", "0"}};
    for (int layer = 1; layer < layout.n_layers; layer += 2)
        for (const char* kind : {"keys", "values"})
            header["layers." + std::to_string(layer) + "." + kind] = {
                {"dtype", "F32"}, {"shape", {64, 64}}, {"data_offsets", {0, numbers.size()}}};
    const std::string text = header.dump();
    const uint64_t length = text.size();
    const EchoMapsFile file(std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + numbers);
    CHECK_THROWS_WITH(read_echo_maps(file.path()), Contains("expected 2000 maps of 16384 bytes each, found 16384"));
    CHECK(read_echo_header(file.path()).layout == layout);
}

TEST_CASE("EchoKV's maps are read as they were written", "[echokv]") {
    EchoMaps maps = formula_maps(EchoLayout{4, 2, 16, 4, 16}, "f00d");
    maps.facts["ridge"] = "0.0001";
    const EchoMapsFile file(to_safetensors(maps));
    const EchoMaps read = read_echo_maps(file.path());
    CHECK(read.layout == maps.layout);
    CHECK(read.model_fingerprint == "f00d");
    CHECK(read.facts.at("ridge") == "0.0001");
    REQUIRE(read.layers.size() == 3);
    for (const auto& [layer, of_layer] : maps.layers) {
        CHECK(read.layers.at(layer).keys.numbers == of_layer.keys.numbers);
        CHECK(read.layers.at(layer).values.numbers == of_layer.values.numbers);
    }
}
