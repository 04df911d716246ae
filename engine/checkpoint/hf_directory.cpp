#include "engine/checkpoint/hf_directory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/checkpoint/config_rules.h"
#include "engine/checkpoint/hf_config.h"
#include "engine/checkpoint/unusable_files.h"
#include "engine/families/registry/registry.h"
#include "engine/files/json_fields.h"
#include "engine/files/safetensors.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";

fs::path if_exists(const fs::path& path) { return fs::is_regular_file(path) ? path : fs::path(); }

std::map<std::string, std::string> read_index(const fs::path& index) {
    const auto json = JsonFields::parse_file(index);
    if (!json.contains("weight_map") || !json["weight_map"].is_object()) {
        throw CheckpointError(index, "has no weight_map");
    }
    std::map<std::string, std::string> shards;
    for (const auto& [tensor, value] : json["weight_map"].items()) {
        const std::string shard = value.is_string() ? value.get<std::string>() : std::string();
        if (shard.empty() || shard.find('/') != std::string::npos || shard == "." || shard == "..") {
            throw CheckpointError(index,
                                  "weight_map of " + tensor + ": expected the name of a file in the same folder");
        }
        shards[tensor] = shard;
    }
    return shards;
}

class HfCheckpoint : public Checkpoint {
 public:
    HfCheckpoint(fs::path path, const fs::path& directory, const fs::path& weights)
        : path_(std::move(path)), directory_(directory), config_(read_hf_config(directory)) {
        if (!weights.empty()) {
            add_file(weights);
        } else if (fs::exists(directory / single_file)) {
            add_file(directory / single_file);
        } else if (fs::exists(directory / index_file)) {
            add_shards(directory / index_file);
        } else {
            for (const char* name : {single_file, index_file}) refuse_dangling_link(directory / name);
            report_no_weights(directory);
        }
        resolve_tied_head();
        map_tensors();
    }

    const ModelConfig& config() const override { return config_; }
    const fs::path& path() const override { return path_; }
    bool has(std::string_view name) const override { return locations_.contains(name); }

    std::vector<TensorInfo> tensors() const override {
        std::vector<TensorInfo> all;
        for (const ExpectedTensor& tensor : expected_tensors(config_)) {
            all.push_back({tensor.name, tensor.shape, locate(tensor.name).entry->dtype});
        }
        return all;
    }

    void read_f32(std::string_view name, std::span<float> out) const override {
        const Location& at = locate(name, out.size());
        at.file->read_f32(*at.entry, out);
    }

    void read_bf16(std::string_view name, std::span<uint16_t> out) const override {
        const Location& at = locate(name, out.size());
        at.file->read_bf16(*at.entry, out);
    }

    std::string stored_type(std::string_view name) const override { return locate(name).entry->dtype; }

    void read_stored(std::string_view name, std::span<std::byte> out) const override {
        const Location& at = locate(name);
        if (out.size() != at.entry->end - at.entry->begin)
            throw std::invalid_argument("tensor " + std::string(name) + ": the buffer has the wrong size, " +
                                        std::to_string(out.size()) + " bytes");
        at.file->read_stored(*at.entry, out);
    }

    TokenizerFiles tokenizer_files() const override {
        return {.gguf = {},
                .tokenizer_json = if_exists(directory_ / "tokenizer.json"),
                .tokenizer_config = if_exists(directory_ / "tokenizer_config.json"),
                .generation_config = if_exists(directory_ / "generation_config.json"),
                .chat_template = if_exists(directory_ / "chat_template.jinja")};
    }

 protected:
    std::vector<fs::path> files() const override {
        std::vector<fs::path> all;
        for (const auto& file : files_) all.push_back(file->path());
        std::sort(all.begin(), all.end());
        return all;
    }

 private:
    struct Location {
        const SafetensorsFile* file = nullptr;
        const SafetensorsEntry* entry = nullptr;
    };

    const Location& locate(std::string_view name) const {
        const auto found = locations_.find(name);
        if (found != locations_.end()) return found->second;
        throw CheckpointError(path_, "has no tensor " + std::string(name));
    }

    const Location& locate(std::string_view name, size_t n_elements) const {
        const Location& at = locate(name);
        uint64_t n = 1;
        for (const int64_t extent : at.entry->shape) n *= static_cast<uint64_t>(extent);
        if (n == n_elements) return at;
        throw std::invalid_argument("tensor " + std::string(name) + " has " + std::to_string(n) +
                                    " elements, but the buffer has " + std::to_string(n_elements));
    }

    const SafetensorsFile& add_file(const fs::path& file) {
        files_.push_back(std::make_unique<SafetensorsFile>(file));
        const SafetensorsFile& added = *files_.back();
        for (const auto& [name, entry] : added.entries()) {
            if (!in_files_.emplace(name, Location{&added, &entry}).second) {
                throw CheckpointError(file, "holds tensor " + name + ", which another shard holds as well");
            }
        }
        return added;
    }

    void add_shards(const fs::path& index) {
        const auto shard_of = read_index(index);
        std::set<std::string> shards;
        for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
        for (const std::string& shard : shards) {
            refuse_dangling_link(directory_ / shard);
            if (!fs::exists(directory_ / shard)) {
                throw CheckpointError(directory_ / shard, "is missing; " + index.filename().string() +
                                                              " lists it as one of " + std::to_string(shards.size()) +
                                                              " shards");
            }
            const SafetensorsFile& file = add_file(directory_ / shard);
            for (const auto& [tensor, owner] : shard_of) {
                if (owner == shard && file.entries().find(tensor) == file.entries().end()) {
                    throw CheckpointError(file.path(), "does not hold tensor " + tensor + ", although " +
                                                           index.filename().string() +
                                                           " lists the tensor in this file");
                }
            }
        }
    }

    /// As in transformers 5, a checkpoint with tied embeddings uses its stored head if it differs from the embeddings.
    void resolve_tied_head() {
        if (!config_.tied_embeddings) return;
        const TensorNames& names = family_named(config_.family).tensors;
        const auto head = in_files_.find(std::string(names.at("lm_head").hf) + ".weight");
        const auto embedding = in_files_.find(std::string(names.at("model.embed_tokens").hf) + ".weight");
        if (head == in_files_.end() || embedding == in_files_.end()) return;
        const auto& [file, entry] = head->second;
        config_.tied_embeddings = file->same_bytes(*entry, *embedding->second.file, *embedding->second.entry);
    }

    void map_tensors() {
        std::set<std::string, std::less<>> expected;
        for (const ExpectedTensor& tensor : expected_tensors(config_)) {
            expected.insert(tensor.hf);
            const auto found = in_files_.find(tensor.hf);
            if (found == in_files_.end()) {
                const std::string foreign = advice_on_unsuitable_weights(
                    [&](std::string_view name) { return in_files_.contains(name); }, path_);
                throw CheckpointError(path_, !foreign.empty()
                                                 ? foreign
                                                 : "has no tensor " + tensor.hf + " " + shape_text(tensor.shape) +
                                                       ", which config.json requires");
            }
            const auto& [file, entry] = found->second;
            if (entry->shape != tensor.shape) {
                throw CheckpointError(file->path(), "tensor " + tensor.hf + " has the shape " +
                                                        shape_text(entry->shape) + ", but config.json requires " +
                                                        shape_text(tensor.shape));
            }
            if (!is_readable_dtype(entry->dtype)) {
                throw CheckpointError(file->path(), "tensor " + tensor.hf + " is of type " + entry->dtype +
                                                        ", expected F32, F16 or BF16");
            }
            locations_[tensor.name] = found->second;
        }
        check_unexpected(expected);
    }

    /// Refuses tensors that the family does not have, because ignoring them would change the results.
    void check_unexpected(const std::set<std::string, std::less<>>& expected) const {
        const std::string layers = std::string(family_named(config_.family).tensors.at("model.layers").hf) + ".";
        for (const auto& [name, at] : in_files_) {
            if (!name.starts_with(layers) || expected.contains(name) || name.ends_with("rotary_emb.inv_freq")) continue;
            const std::string number = name.substr(layers.size(), name.find('.', layers.size()) - layers.size());
            const bool in_use = number.size() < 4 && number.find_first_not_of("0123456789") == std::string::npos &&
                                !number.empty() && std::stoi(number) < config_.n_layers;
            if (in_use) {
                throw CheckpointError(at.file->path(), "holds tensor " + name + ", which a model of the family " +
                                                           config_.family + " with this config.json does not have; " +
                                                           supported_models());
            }
        }
    }

    fs::path path_;
    fs::path directory_;
    ModelConfig config_;
    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::map<std::string, Location, std::less<>> in_files_;   ///< all tensors, by their names in files
    std::map<std::string, Location, std::less<>> locations_;  ///< the model's tensors, by the engine's names
};

}  // namespace

std::unique_ptr<Checkpoint> open_hf_directory(const fs::path& directory, const fs::path& weights) {
    return std::make_unique<HfCheckpoint>(weights.empty() ? directory : weights, directory, weights);
}

}  // namespace kvscope::checkpoint
