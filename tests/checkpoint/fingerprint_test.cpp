#include "engine/files/fingerprint.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string_view>

#include "common/sha256.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/files/user_cache_file.h"
#include "tests/checkpoint/model_files.h"
#include "tests/own_cache.h"

using namespace kvscope::checkpoint;
using namespace kvscope::checkpoint::testing;

namespace {

std::string sha(const std::string& text, size_t piece) {
    kvscope::Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) hash.update(std::string_view(text).substr(at, piece));
    return hash.hex_digest();
}

struct OwnCache {
    TemporaryFolder folder;
    kvscope::testing::OwnCache cache{folder};
    fs::path entries() const { return folder / "kvscope/fingerprints"; }
};

}  // namespace

TEST_CASE("SHA-256 of the standard's examples") {
    CHECK(sha("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha("abc", 1) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (const size_t piece : {1, 7, 55, 56, 64}) {
        CHECK(sha(two_blocks, piece) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
    CHECK(sha(std::string(1000000, 'a'), 1000) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a fingerprint depends on every byte, the order of files and the configuration, but not on paths") {
    const OwnCache cache;
    const TemporaryFolder folder;
    std::string bytes(9 << 20, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
    write_file(folder / "a", bytes);
    write_file(folder / "b", "second");
    const auto original = fingerprint_files({folder / "a", folder / "b"}, "{}");
    CHECK(original.size() == 64);
    CHECK(fingerprint_files({folder / "a", folder / "b"}, "{}") == original);
    CHECK(fingerprint_files({folder / "b", folder / "a"}, "{}") != original);
    CHECK(fingerprint_files({folder / "a", folder / "b"}, "{ }") != original);
    CHECK(fingerprint_files({folder / "a"}, "{}") != original);

    fs::copy_file(folder / "a", folder / "elsewhere");
    CHECK(fingerprint_files({folder / "elsewhere", folder / "b"}, "{}") == original);
    for (const size_t at : {size_t{0}, size_t{4} << 20, bytes.size() - 1}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        write_file(folder / "elsewhere", changed);
        CHECK(fingerprint_files({folder / "elsewhere", folder / "b"}, "{}") != original);
    }
    write_file(folder / "elsewhere", bytes.substr(0, bytes.size() - 1));
    CHECK(fingerprint_files({folder / "elsewhere", folder / "b"}, "{}") != original);
}

TEST_CASE("a change with the same size and modification time is detected") {
    const OwnCache cache;
    const TemporaryFolder folder;
    write_file(folder / "weights", "first!");
    const auto time = fs::last_write_time(folder / "weights");
    const auto before = fingerprint_files({folder / "weights"}, "");
    write_file(folder / "weights", "second");
    fs::last_write_time(folder / "weights", time);
    CHECK(fingerprint_files({folder / "weights"}, "") != before);
}

TEST_CASE("only files that are not brand-new are cached, and damaged cache entries are ignored") {
    const OwnCache cache;
    const TemporaryFolder folder;
    const fs::path settled = data("models/gguf-llama-f32/model.gguf");
    const auto expected = fingerprint_files({settled}, "");
    const bool cached = fs::exists(cache.entries()) && !fs::is_empty(cache.entries());
    if (cached) {  // a file created in this second is not cached
        const fs::path entry = fs::directory_iterator(cache.entries())->path();
        const std::string content = read_file(entry);
        const size_t n = std::stoul(content), begin = content.find('\n') + 1;
        const std::string identity = content.substr(begin, n);
        UserCacheFile("fingerprints", entry.filename(), identity).store(std::string(64, 'a'));
        CHECK(fingerprint_files({settled}, "") != expected);  // the cached hash is returned
        std::string other = content;
        other.back() = other.back() == '0' ? '1' : '0';
        write_file(entry, other);
        CHECK(fingerprint_files({settled}, "") == expected);
        for (const std::string& damaged : {std::string(), content.substr(1), std::string(content.size(), 'z')}) {
            write_file(entry, damaged);
            CHECK(fingerprint_files({settled}, "") == expected);
        }
    }
    ::setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    CHECK(fingerprint_files({settled}, "") == expected);
}

TEST_CASE("a model's fingerprint changes with a weight and with config.json") {
    const OwnCache cache;
    const TemporaryFolder folder;
    fs::copy(data("models/llama-biases"), folder, fs::copy_options::recursive);
    const auto original = open_checkpoint(folder)->fingerprint();
    CHECK(open_checkpoint(data("models/llama-biases"))->fingerprint() == original);
    std::string weights = read_file(folder / "model.safetensors");
    weights.back() = static_cast<char>(weights.back() ^ 1);
    write_file(folder / "model.safetensors", weights);
    const auto changed = open_checkpoint(folder)->fingerprint();
    CHECK(changed != original);
    auto config = nlohmann::json::parse(read_file(folder / "config.json"));
    config["rms_norm_eps"] = 1e-3;
    write_file(folder / "config.json", config.dump());
    CHECK(open_checkpoint(folder)->fingerprint() != changed);
}
