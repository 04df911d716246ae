#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/files/user_cache_file.h"
#include "engine/prefill/projection_eigenvectors.h"
#include "tests/engine/experiment_on_disk.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/threads.h"
#include "tests/own_cache.h"
#include "tests/trace/whole_records.h"

using namespace kvscope;
using namespace kvscope::engine::testing;

namespace {

std::vector<float> modes_of(const engine::Model& model, const std::string& fingerprint) {
    engine::SilentProgress progress;
    return engine::projection_eigenvectors(model.transformer(), fingerprint, progress);
}

std::vector<float> solved_modes(const engine::Model& model) {
    std::vector<float> all;
    for (int layer = 0; layer < model.transformer().shape().n_layers; ++layer) {
        const auto modes = engine::layer_projection_eigenvectors(model.transformer(), layer);
        all.insert(all.end(), modes.begin(), modes.end());
    }
    return all;
}

std::string bytes_of(const std::filesystem::path& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
}

void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("modes are eigenvectors of each head's W W^T in descending order of eigenvalue", "[projections]") {
    const auto model = small_model("llama3-gqa-sharded", kernels::DType::f32);
    const auto shape = model.transformer().shape();
    const int64_t d = shape.head_dim, n_heads = shape.n_heads + 2 * shape.n_kv_heads;
    const auto modes = engine::layer_projection_eigenvectors(model.transformer(), 1);
    REQUIRE(modes.size() == static_cast<size_t>(n_heads * d * d));
    const at::Tensor weight = model.transformer().on_processor().weights().layers[1].qkv.numbers().contiguous();
    const int64_t hidden = weight.size(1);
    for (int64_t head = 0; head < n_heads; ++head) {
        double before = INFINITY;
        for (int64_t i = 0; i < d; ++i) {
            const float* mode = modes.data() + (head * d + i) * d;
            // For a unit vector v, |W^T v|^2 is the eigenvalue.
            double length = 0, eigenvalue = 0;
            for (int64_t c = 0; c < d; ++c) length += static_cast<double>(mode[c]) * static_cast<double>(mode[c]);
            for (int64_t column = 0; column < hidden; ++column) {
                double sum = 0;
                for (int64_t c = 0; c < d; ++c)
                    sum += static_cast<double>(mode[c]) *
                           static_cast<double>(weight.const_data_ptr<float>()[(head * d + c) * hidden + column]);
                eigenvalue += sum * sum;
            }
            CHECK(length == Approx(1.0));
            CHECK(eigenvalue <= before * (1 + 1e-5));
            before = eigenvalue;
        }
    }
}

TEST_CASE("modes from the cache equal computed modes, whatever the cache contains", "[projections]") {
    const TemporaryFolder folder;
    const kvscope::testing::OwnCache cache(folder.path());
    const auto model = small_model("qwen2-biases", kernels::DType::bf16);
    const auto expected = solved_modes(model);
    const auto file = folder.path() / "kvscope/modes" / "abc-bf16.f32";
    CHECK(same_bits(modes_of(model, "abc"), expected));
    REQUIRE(std::filesystem::exists(file));
    const std::string kept = bytes_of(file);

    SECTION("read back") {
        CHECK(same_bits(modes_of(model, "abc"), expected));
        // Weights in another type have other modes.
        const auto other = small_model("qwen2-biases", kernels::DType::f32);
        CHECK(same_bits(modes_of(other, "abc"), solved_modes(other)));
        CHECK(bytes_of(file) == kept);
        CHECK(std::filesystem::exists(folder.path() / "kvscope/modes" / "abc-f32.f32"));
    }
    SECTION("damaged") {
        for (const size_t at : {size_t{0}, size_t{30}, kept.size() / 2, kept.size() - 1}) {
            std::string damaged = kept;
            damaged[at] = static_cast<char>(damaged[at] ^ 1);
            write(file, damaged);
            CHECK(same_bits(modes_of(model, "abc"), expected));
            CHECK(bytes_of(file) == kept);  // the file is repaired
        }
        for (const std::string& damaged : {std::string(), kept.substr(0, kept.size() - 4), kept + "more"}) {
            write(file, damaged);
            CHECK(same_bits(modes_of(model, "abc"), expected));
            CHECK(bytes_of(file) == kept);
        }
    }
    SECTION("of another model") {
        const auto theirs = folder.path() / "kvscope/modes" / "def-bf16.f32";
        std::filesystem::copy(file, theirs);
        CHECK(same_bits(modes_of(model, "def"), expected));
        CHECK(bytes_of(theirs) != kept);
    }
    SECTION("no place to write") {
        std::filesystem::remove_all(folder.path() / "kvscope");
        write(folder.path() / "kvscope", "no folder");
        CHECK(same_bits(modes_of(model, "abc"), expected));
    }
    SECTION("a folder in its place") {
        std::filesystem::remove(file);
        std::filesystem::create_directories(file / "within");
        CHECK(same_bits(modes_of(model, "abc"), expected));
        CHECK(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}) == 1);
    }
}

TEST_CASE("modes in the cache are read, not computed", "[projections]") {
    const TemporaryFolder folder;
    const kvscope::testing::OwnCache cache(folder.path());
    const auto model = small_model("qwen2-biases", kernels::DType::f32);
    auto shifted = modes_of(model, "abc");
    shifted[0] += 1.0f;
    const auto file = folder.path() / "kvscope/modes" / "abc-f32.f32";
    const std::string kept = bytes_of(file);
    const size_t head = std::stoul(kept), begin = kept.find('\n') + 1;
    checkpoint::UserCacheFile("modes", "abc-f32.f32", kept.substr(begin, head))
        .store({reinterpret_cast<const char*>(shifted.data()), shifted.size() * sizeof(float)});
    CHECK(same_bits(modes_of(model, "abc"), shifted));
}

TEST_CASE("a run's measures are the same with stored modes and with any number of threads", "[projections]") {
    const TemporaryFolder folder;
    const kvscope::testing::OwnCache cache(folder.path());
    const auto contributions = [&](const std::string& file, int n_threads) {
        const Threads threads(n_threads);
        const auto model = small_model("qwen2-biases", kernels::DType::bf16);  // a new model without modes in memory
        const auto reader =
            run_experiment(folder, file, model, {prompt_of_ids(some_ids(model, 90))}, {}, options_of(1, false));
        return trace::prompt_record(reader, 0).mode_contribution_q;
    };
    const auto first = contributions("first.h5", 1);
    REQUIRE(!first.empty());
    REQUIRE(std::filesystem::exists(folder.path() / "kvscope/modes"));
    CHECK(same_bits(contributions("kept.h5", 3), first));
    std::filesystem::remove_all(folder.path() / "kvscope");
    CHECK(same_bits(contributions("again.h5", 2), first));
}
