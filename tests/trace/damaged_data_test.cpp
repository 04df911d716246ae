// Damaged data sets and attributes, one case for each kind of damage: a typed error with a clear message, never a
// crash.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/trace/damage.h"
#include "tests/trace/sample_trace.h"
#include "trace/tree.h"

using namespace kvscope::trace;
using namespace kvscope::trace::damage;

TEST_CASE("missing data and data of wrong type or shape", "[trace]") {
    const sample::TemporaryFolder folder;
    const fs::path path = folder / "t.h5";
    static const std::string sound = [&] {
        sample::write_anew(path);
        REQUIRE(find_problems(path).empty());
        return contents(path);
    }();
    write_bytes(path, sound);
    const std::string prompt = "/prompts/0";
    const std::string run = "/prompts/0/runs/1";
    std::string at;       // where find_problems() must report it
    bool unread = false;  // whether the reader must fail, too
    const auto damage = [&](const std::string& where, bool reader_fails, const std::function<void(hid_t)>& change) {
        at = where;
        unread = reader_fails;
        edit(path, change);
    };

    SECTION("no model") {
        damage("/model", true, [](hid_t f) { remove(f, "/model"); });
    }
    SECTION("a model attribute missing") {
        damage("/model@n_layers", true, [](hid_t f) { H5Adelete(h5::open_group(f, "/model").get(), "n_layers"); });
    }
    SECTION("a number where text belongs") {
        damage("/model@family", true, [](hid_t f) { set_attribute(f, "/model", "family", std::int64_t{3}); });
    }
    SECTION("text where a number belongs") {
        damage("/model@n_heads", true, [](hid_t f) { set_attribute(f, "/model", "n_heads", std::string("four")); });
    }
    SECTION("no layers") {
        damage("/model", true, [](hid_t f) { set_attribute(f, "/model", "n_layers", std::int64_t{0}); });
    }
    SECTION("n_kv_heads is not a divisor of n_heads") {
        damage("/model@n_kv_heads", true, [](hid_t f) { set_attribute(f, "/model", "n_kv_heads", std::int64_t{3}); });
    }
    SECTION("fingerprint") {
        damage("/model@fingerprint", false,
               [](hid_t f) { set_attribute(f, "/model", "fingerprint", std::string("x")); });
    }
    SECTION("dtype") {
        damage("/model@dtype", false, [](hid_t f) { set_attribute(f, "/model", "dtype", std::string("int8")); });
    }
    SECTION("config_json") {
        damage("/model@config_json", false,
               [](hid_t f) { set_attribute(f, "/model", "config_json", std::string("{")); });
    }
    SECTION("a spectrum that rises") {
        damage("/model/spectrum/q", false, [](hid_t f) {
            std::vector<float> values(3 * 32, 1.0F);
            values[40] = 2.0F;
            replace(f, "/model/spectrum/q", values, {3, 32});
        });
    }
    SECTION("no prompts") {
        damage("/prompts", false, [](hid_t f) {
            remove(f, "/prompts");
            remove(f, "/results");
            h5::create_group(f, "/prompts");
        });
    }
    SECTION("a gap in the prompts") {
        damage("/prompts", false, [](hid_t f) { H5Lmove(f, "/prompts/0", f, "/prompts/1", H5P_DEFAULT, H5P_DEFAULT); });
    }
    SECTION("a flag that is 2") {
        damage("/prompts/0@truncated", false,
               [](hid_t f) { set_attribute(f, "/prompts/0", "truncated", std::int64_t{2}); });
    }
    SECTION("a question that begins after the prompt's end") {
        damage(prompt, true, [&](hid_t f) { set_attribute(f, "/prompts/0", "n_context", std::int64_t{480}); });
    }
    SECTION("no token ids") {
        damage(prompt + "/token_ids", true, [&](hid_t f) { remove(f, prompt + "/token_ids"); });
        CHECK_THROWS_AS(Reader(path).token_ids(0), DamagedTrace);
        unread = false;  // readers of whole records skip missing data sets
    }
    SECTION("token ids beyond the vocabulary") {
        damage(prompt + "/token_ids", false,
               [&](hid_t f) { replace(f, prompt + "/token_ids", std::vector<std::int32_t>(48, 64), {48}); });
    }
    SECTION("token ids as reals") {
        damage(prompt + "/token_ids", false,
               [&](hid_t f) { replace(f, prompt + "/token_ids", std::vector<float>(48, 1.0F), {48}); });
    }
    SECTION("token text as numbers") {
        damage(prompt + "/token_text", true,
               [&](hid_t f) { replace(f, prompt + "/token_text", std::vector<std::int32_t>(48, 1), {48}); });
    }
    SECTION("another number of tokens") {
        damage(prompt + "/token_ids", true,
               [&](hid_t f) { replace(f, prompt + "/token_ids", std::vector<std::int32_t>(47, 1), {47}); });
    }
    SECTION("window_attention of another rank") {
        damage(prompt + "/full/window_attention", true, [&](hid_t f) {
            replace(f, prompt + "/full/window_attention", std::vector<float>(3 * 4 * 48, 1.0F / 48), {12, 48});
        });
    }
    SECTION("window_attention that does not sum to 1") {
        damage(prompt + "/full/window_attention", false, [&](hid_t f) {
            replace(f, prompt + "/full/window_attention", std::vector<float>(3 * 4 * 48, 0.5F / 48), {3, 4, 48});
        });
    }
    SECTION("a group where a data set belongs") {
        damage(prompt + "/full/head_jsd", true, [&](hid_t f) {
            remove(f, prompt + "/full/head_jsd");
            h5::create_group(f, prompt + "/full/head_jsd");
        });
    }
    SECTION("a data set where a group belongs") {
        damage(prompt + "/runs", false, [&](hid_t f) {
            remove(f, prompt + "/runs");
            const std::vector<float> one(1);
            h5::write_data_set<float>(f, prompt + "/runs", std::span<const float>(one), std::vector<std::size_t>{1});
        });
    }
    SECTION("JSD beyond ln 2") {
        damage(prompt + "/full/head_jsd", false, [&](hid_t f) {
            std::vector<float> values(3 * 4 * 4, 0.0F);
            values[1] = values[4] = 0.8F;
            replace(f, prompt + "/full/head_jsd", values, {3, 4, 4});
        });
    }
    SECTION("JSD that is not symmetric") {
        damage(prompt + "/full/head_jsd", false, [&](hid_t f) {
            std::vector<float> values(3 * 4 * 4, 0.0F);
            values[1] = 0.2F;
            replace(f, prompt + "/full/head_jsd", values, {3, 4, 4});
        });
    }
    SECTION("NaN in a measure") {
        damage(prompt + "/full/adjacent_similarity/k", false, [&](hid_t f) {
            replace(f, prompt + "/full/adjacent_similarity/k", std::vector<float>(3, std::nanf("")), {3});
        });
    }
    SECTION("contributions that do not add up") {
        damage(prompt + "/full/mode_contribution/v", false, [&](hid_t f) {
            replace(f, prompt + "/full/mode_contribution/v", std::vector<float>(3 * 2 * 8, -0.01F), {3, 2, 8});
        });
    }
    SECTION("similarities of layers that are not symmetric") {
        damage(prompt + "/full/layer_similarity/k", false, [&](hid_t f) {
            std::vector<float> values(9, 1.0F);
            values[1] = 0.5F;
            replace(f, prompt + "/full/layer_similarity/k", values, {3, 3});
        });
    }
    SECTION("a similarity of heads beyond 1") {
        damage(prompt + "/full/head_similarity/v", false, [&](hid_t f) {
            replace(f, prompt + "/full/head_similarity/v", std::vector<float>(3 * 2 * 2, 1.5F), {3, 2, 2});
        });
    }
    SECTION("an alignment below -1") {
        damage(prompt + "/full/gradient_alignment/c12", false, [&](hid_t f) {
            replace(f, prompt + "/full/gradient_alignment/c12", std::vector<float>(3 * 4, -2.0F), {3, 4});
        });
    }
    SECTION("no run of the policy full") {
        damage(prompt + "/runs", false,
               [&](hid_t f) { set_attribute(f, prompt + "/runs/0", "policy", std::string("none")); });
    }
    SECTION("the full run's budget") {
        damage(prompt + "/runs/0@budget", false,
               [&](hid_t f) { set_attribute(f, prompt + "/runs/0", "budget", std::int64_t{7}); });
    }
    SECTION("an unknown status") {
        damage(run, true, [&](hid_t f) { set_attribute(f, run, "status", std::string("halfway")); });
    }
    SECTION("an unknown granularity") {
        damage(run, true, [&](hid_t f) { set_attribute(f, run, "granularity", std::string("layer")); });
    }
    SECTION("a granularity that does not fit the shapes") {
        damage(run + "/kept_offsets", true,
               [&](hid_t f) { set_attribute(f, run, "granularity", std::string("query_head")); });
    }
    SECTION("no kept_indices") {
        damage(run + "/kept_indices", true, [&](hid_t f) { remove(f, run + "/kept_indices"); });
    }
    SECTION("kept_offsets that fall") {
        damage(run + "/kept_offsets", true, [&](hid_t f) {
            replace(f, run + "/kept_offsets", std::vector<std::uint64_t>{0, 16, 90, 48, 64, 80, 96}, {7});
        });
    }
    SECTION("kept_offsets that do not begin at 0") {
        damage(run + "/kept_offsets", true, [&](hid_t f) {
            replace(f, run + "/kept_offsets", std::vector<std::uint64_t>{1, 16, 32, 48, 64, 80, 96}, {7});
        });
    }
    SECTION("kept_offsets beyond the entries") {
        damage(run + "/kept_offsets", true, [&](hid_t f) {
            replace(f, run + "/kept_offsets", std::vector<std::uint64_t>{0, 16, 32, 48, 64, 80, ~std::uint64_t{0}},
                    {7});
        });
    }
    SECTION("kept_offsets of i32") {
        damage(run + "/kept_offsets", false, [&](hid_t f) {
            replace(f, run + "/kept_offsets", std::vector<std::int32_t>{0, 16, 32, 48, 64, 80, 96}, {7});
        });
    }
    SECTION("positions beyond the prompt") {
        damage(run + "/kept_indices", true,
               [&](hid_t f) { replace(f, run + "/kept_indices", std::vector<std::uint32_t>(96, 48), {96}); });
    }
    SECTION("positions that do not ascend") {
        damage(run + "/kept_indices", true,
               [&](hid_t f) { replace(f, run + "/kept_indices", std::vector<std::uint32_t>(96, 5), {96}); });
    }
    SECTION("positions that descend in one row") {
        damage(run + "/kept_indices", true, [&](hid_t f) {
            auto indices = h5::read_data_set<std::uint32_t>(h5::open_data_set(f, run + "/kept_indices").get());
            std::reverse(indices.begin() + 32, indices.begin() + 48);
            replace(f, run + "/kept_indices", indices, {96});
        });
        CHECK_THAT(message_of([&] { (void)Reader(path).kept(0, 1); }),
                   Catch::Contains("kept_indices: expected ascending positions in row 2"));
    }
    SECTION("scores as integers") {
        damage(run + "/scores", false, [&](hid_t f) {
            replace(f, run + "/scores", std::vector<std::int32_t>(3 * 2 * 48, 1), {3, 2, 48});
        });
    }
    SECTION("another number of steps than the full run's") {
        damage(run + "/step_kl", false,
               [&](hid_t f) { replace(f, run + "/step_kl", std::vector<float>(5, 0.0F), {5}); });
    }
    SECTION("negative divergence") {
        damage(run + "/step_kl", false,
               [&](hid_t f) { replace(f, run + "/step_kl", std::vector<float>(6, -1.0F), {6}); });
    }
    SECTION("an agreement of 2") {
        damage(run + "/step_agreement", false,
               [&](hid_t f) { replace(f, run + "/step_agreement", std::vector<std::uint8_t>(6, 2), {6}); });
    }
    SECTION("more attention kept than exists") {
        damage(run + "/attention_kept", false, [&](hid_t f) {
            replace(f, run + "/attention_kept", std::vector<float>(12, 1.5F), {3, 4});
        });
    }
    SECTION("an entry that does not exist") {
        damage("/prompts/0/runs/4/merged/token_entry", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/4/merged/token_entry", std::vector<std::int32_t>(3 * 2 * 48, 12), {3, 2, 48});
        });
    }
    SECTION("an entry without the token at its position") {
        damage("/prompts/0/runs/4/merged/token_entry", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/4/merged/token_entry", std::vector<std::int32_t>(3 * 2 * 48, 0), {3, 2, 48});
        });
    }
    SECTION("more merged keys outside [0, 1] than merged keys") {
        damage("/prompts/0/runs/4/merged/keys_outside", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/4/merged/keys_outside", std::vector<std::uint64_t>(3, 25), {3});
        });
    }
    SECTION("an entry of no tokens") {
        damage("/prompts/0/runs/4/merged/cardinality", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/4/merged/cardinality", std::vector<std::uint16_t>(72, 0), {72});
        });
    }
    SECTION("an entry with NaN tokens") {
        damage("/prompts/0/runs/4/merged/cardinality", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/4/merged/cardinality", std::vector<float>(72, std::nanf("")), {72});
        });
    }
    SECTION("an entry with a cardinality above its number of tokens") {
        damage("/prompts/0/runs/4/merged/cardinality", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/4/merged/cardinality", std::vector<float>(72, 1e6F), {72});
        });
    }
    SECTION("a cache of no bytes") {
        damage(run + "/cache_bytes", false,
               [&](hid_t f) { replace(f, run + "/cache_bytes", std::vector<std::uint64_t>(3, 0), {3}); });
    }
    SECTION("fewer predicted bytes than whole keys and values need") {
        damage(run + "/cache_bytes_predicted", false,
               [&](hid_t f) { replace(f, run + "/cache_bytes_predicted", std::vector<std::uint64_t>(3, 8), {3}); });
    }
    SECTION("a divergence that is not finite") {
        damage(run + "/step_kl", false, [&](hid_t f) {
            replace(f, run + "/step_kl", std::vector<float>(6, std::numeric_limits<float>::infinity()), {6});
        });
    }
    SECTION("a window below 0") {
        damage(run + "@window", false, [&](hid_t f) { set_attribute(f, run, "window", std::int64_t{-1}); });
    }
    SECTION("seconds that are no number, not finite, or below 0") {
        const auto [name, value] = GENERATE(std::pair{"prefill_s", std::nan("")}, std::pair{"select_s", -0.5},
                                            std::pair{"prefill_s", std::numeric_limits<double>::infinity()},
                                            std::pair{"decode_s", std::nan("")}, std::pair{"first_token_s", -1.0},
                                            std::pair{"decode_tokens_per_s", std::nan("")});
        damage(run + "@" + name, false,
               [&, name = name, value = value](hid_t f) { set_attribute(f, run, name, value); });
    }
    SECTION("a budget_fraction of another budget") {
        damage(run + "@budget_fraction", false, [&](hid_t f) { set_attribute(f, run, "budget_fraction", 0.9); });
    }
    SECTION("an invalid base of the rotary angles") {
        damage("/model@rope_theta", false, [](hid_t f) { set_attribute(f, "/model", "rope_theta", std::nan("")); });
    }
    SECTION("runs in the recipe that the file lacks") {
        damage("/prompts/0/runs/90", false, [](hid_t f) {
            std::string runs = R"({"policy": "full"})";
            for (int i = 1; i < 91; ++i) runs += R"(, {"policy": "snapkv"})";
            set_attribute(f, "/", "recipe_json", R"({"runs": [)" + runs + "]}");
        });
    }
    SECTION("a run with a policy that the recipe lacks") {
        damage("/prompts/0/runs/0@policy", false, [](hid_t f) {
            set_attribute(f, "/", "recipe_json", std::string(R"({"runs": [{"policy": "snapkv"}]})"));
        });
    }
    SECTION("more partly stored entries than entries") {
        damage("/prompts/0/runs/5/stored/entries", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/5/stored/entries", std::vector<std::uint32_t>(6, 49), {3, 2});
        });
    }
    SECTION("bytes by kind that do not sum to the layer's bytes") {
        damage("/prompts/0/runs/5/cache_bytes_predicted", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/5/stored/channel_bytes", std::vector<std::uint64_t>(3, 7), {3});
        });
    }
    SECTION("an error below 0") {
        damage("/prompts/0/runs/5/stored/key_error", false, [&](hid_t f) {
            replace(f, "/prompts/0/runs/5/stored/key_error", std::vector<float>(6, -1.0F), {3, 2});
        });
    }
    SECTION("a context of a later prompt") {
        damage("/prompts/0@context_of", false,
               [&](hid_t f) { set_attribute(f, "/prompts/0", "context_of", std::int64_t{4}); });
    }
    SECTION("an implausible shape") {
        damage(run + "/output_ids", true, [&](hid_t f) {
            remove(f, run + "/output_ids");
            const hsize_t length = hsize_t{1} << 48;
            const hsize_t chunk = 1 << 20;
            const h5::Handle space(H5Screate_simple(1, &length, nullptr), H5Sclose);
            const h5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
            H5Pset_chunk(creation.get(), 1, &chunk);
            const h5::Handle open(H5Dcreate2(f, (run + "/output_ids").c_str(), H5T_STD_I32LE, space.get(), H5P_DEFAULT,
                                             creation.get(), H5P_DEFAULT),
                                  H5Dclose);
            REQUIRE(open);
        });
    }
    SECTION("a table of results of another kind") {
        damage("/results/other", true, [&](hid_t f) {
            const std::vector<float> one(1);
            h5::write_data_set<float>(f, "/results/other", std::span<const float>(one), std::vector<std::size_t>{1});
        });
    }

    INFO(at);
    if (!at.empty()) {
        CHECK(reports(path, at));
        if (unread) {
            CHECK_THROWS_AS(read_all(path), DamagedTrace);
            // The message names the place.
            CHECK(message_of([&] { read_all(path); }).find("t.h5") != std::string::npos);
        }
        CHECK_NOTHROW(tree(path));
    }
}
