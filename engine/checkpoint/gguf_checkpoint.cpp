#include "engine/checkpoint/gguf_checkpoint.h"

#include <ggml.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "engine/checkpoint/config_rules.h"
#include "engine/checkpoint/gguf_config.h"
#include "engine/families/registry/registry.h"
#include "engine/files/gguf_file.h"
#include "kernels/bf16.h"
#include "kernels/threads/parallel_with_scratch.h"

namespace kvscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t bytes_per_task = uint64_t{1} << 18;

/// Returns the name of one file of a split set: "prefix-00002-of-00005.gguf".
std::string split_name(const std::string& prefix, int64_t number, int64_t count) {
    const auto padded = [](int64_t n) {
        const std::string digits = std::to_string(n);
        return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    };
    return prefix + "-" + padded(number) + "-of-" + padded(count) + ".gguf";
}

class GgufCheckpoint : public Checkpoint {
 public:
    explicit GgufCheckpoint(fs::path path) : path_(std::move(path)) {
        add_file(path_);
        add_splits();
        config_ = read_gguf_config(*files_.front(), tensors_);
        map_tensors();
        read_rope_factors();
        check_config(config_, path_);
        config_.config_json = config_as_json(config_);
        for (const auto& file : files_) file->drop_metadata();
    }

    const ModelConfig& config() const override { return config_; }
    const fs::path& path() const override { return path_; }
    bool has(std::string_view name) const override { return locations_.find(name) != locations_.end(); }

    std::vector<TensorInfo> tensors() const override {
        std::vector<TensorInfo> all;
        for (const ExpectedTensor& tensor : expected_tensors(config_)) {
            all.push_back({tensor.name, tensor.shape, locations_.at(tensor.name).tensor->type_name});
        }
        return all;
    }

    void read_f32(std::string_view name, std::span<float> out) const override {
        read(locate(name, out.size()), out.data());
    }

    void read_bf16(std::string_view name, std::span<uint16_t> out) const override {
        read(locate(name, out.size()), out.data());
    }

    std::string stored_type(std::string_view name) const override { return locate(name).tensor->type_name; }

    void read_stored(std::string_view name, std::span<std::byte> out) const override {
        const Location& at = locate(name);
        const GgufTensor& tensor = *at.tensor;
        const int64_t n_rows = tensor.shape.front();
        if (tensor.shape.size() < 2 || out.size() != static_cast<uint64_t>(n_rows) * tensor.row_bytes)
            throw std::invalid_argument("tensor " + std::string(name) + ": the buffer has the wrong size, " +
                                        std::to_string(out.size()) + " bytes");
        each_row(at, n_rows, [&](int64_t row, const std::byte* raw, Scratch&) {
            std::memcpy(out.data() + static_cast<uint64_t>(row) * tensor.row_bytes, raw, tensor.row_bytes);
        });
    }

    TokenizerFiles tokenizer_files() const override {
        TokenizerFiles all;
        all.gguf = path_;
        return all;
    }

 protected:
    std::vector<fs::path> files() const override {
        std::vector<fs::path> all;
        for (const auto& file : files_) all.push_back(file->path());
        return all;
    }

 private:
    struct Location {
        const FileReader* file = nullptr;
        const GgufTensor* tensor = nullptr;
        int64_t n_heads = 0;  ///< number of heads if rows are interleaved, else 0
    };

    struct Scratch {
        std::vector<std::byte> raw;
        std::vector<float> row;
    };

    const Location& locate(std::string_view name) const {
        const auto found = locations_.find(name);
        if (found == locations_.end()) throw CheckpointError(path_, "has no tensor " + std::string(name));
        return found->second;
    }

    const Location& locate(std::string_view name, size_t n_elements) const {
        const Location& at = locate(name);
        uint64_t n = 1;
        for (const int64_t extent : at.tensor->shape) n *= static_cast<uint64_t>(extent);
        if (n == n_elements) return at;
        throw std::invalid_argument("tensor " + std::string(name) + " has " + std::to_string(n) +
                                    " elements, but the buffer has " + std::to_string(n_elements));
    }

    void add_file(const fs::path& path) {
        files_.push_back(std::make_unique<GgufFile>(path));
        for (const auto& [name, tensor] : files_.back()->tensors()) {
            if (!tensors_.emplace(name, &tensor).second) {
                files_.back()->fail("holds tensor " + name + ", which another file of the set holds as well");
            }
            file_of_.emplace(name, &files_.back()->file());
        }
    }

    void add_splits() {
        const GgufFile& first = *files_.front();
        const int64_t count = first.integer("split.count").value_or(1);
        if (count <= 1) return;
        if (count > 99999) first.fail("split.count is " + std::to_string(count) + ", expected at most 99999");
        const int64_t number = first.integer("split.no").value_or(0);
        const std::string file_name = path_.filename().string();
        const std::string ending = split_name("", number + 1, count);
        if (!file_name.ends_with(ending)) {
            first.fail("says it is file " + std::to_string(number + 1) + " of " + std::to_string(count) +
                       "; expected a name that ends in " + ending);
        }
        const std::string prefix = file_name.substr(0, file_name.size() - ending.size());
        if (number != 0) {
            first.fail("is file " + std::to_string(number + 1) + " of a set of " + std::to_string(count) +
                       "; give the first, " + split_name(prefix, 1, count));
        }
        for (int64_t i = 2; i <= count; ++i) {
            const fs::path next = path_.parent_path() / split_name(prefix, i, count);
            if (!fs::exists(next)) {
                throw CheckpointError(
                    next, "is missing; " + file_name + " is the first of a set of " + std::to_string(count) + " files");
            }
            add_file(next);
            if (files_.back()->integer("split.count").value_or(1) != count ||
                files_.back()->integer("split.no").value_or(0) != i - 1) {
                files_.back()->fail("is not file " + std::to_string(i) + " of " + std::to_string(count) + " of " +
                                    file_name);
            }
        }
        const auto stated = first.integer("split.tensors.count");
        if (stated && *stated != static_cast<int64_t>(tensors_.size())) {
            first.fail("says its set holds " + std::to_string(*stated) + " tensors, found " +
                       std::to_string(tensors_.size()));
        }
    }

    void map_tensors() {
        const bool interleaved = family_named(config_.family).gguf_interleaves_qk;
        std::set<std::string, std::less<>> expected;
        for (const ExpectedTensor& wanted : expected_tensors(config_)) {
            const std::string& name = wanted.gguf;
            expected.insert(name);
            const auto found = tensors_.find(name);
            if (found == tensors_.end()) {
                throw CheckpointError(
                    path_, "has no tensor " + name + " " + shape_text(wanted.shape) + ", which its metadata requires");
            }
            const GgufTensor& tensor = *found->second;
            if (tensor.shape != wanted.shape) {
                throw CheckpointError(path_, "tensor " + name + " has the shape " + shape_text(tensor.shape) +
                                                 ", but the metadata requires " + shape_text(wanted.shape));
            }
            if (tensor.type != GGML_TYPE_F32 && to_float(tensor) == nullptr) {
                throw CheckpointError(
                    path_, "tensor " + name + " is of type " + tensor.type_name + ", which cannot be dequantized");
            }
            locations_[wanted.name] = {file_of_.at(name), &tensor, interleaved ? wanted.n_rotated_heads : 0};
        }
        check_unexpected(expected);
    }

    /// Refuses tensors that the family does not have, because ignoring them would change the results.
    void check_unexpected(const std::set<std::string, std::less<>>& expected) const {
        const std::string layers = std::string(family_named(config_.family).tensors.at("model.layers").gguf) + ".";
        for (const auto& [name, tensor] : tensors_) {
            if (!name.starts_with(layers) || expected.contains(name) || name.ends_with(".attn_rot_embd")) continue;
            throw CheckpointError(file_of_.at(name)->path(), "holds tensor " + name + ", which a model of the family " +
                                                                 config_.family + " does not have; " +
                                                                 supported_models());
        }
    }

    void read_rope_factors() {
        const auto found = tensors_.find("rope_freqs.weight");
        if (found == tensors_.end()) return;
        const GgufTensor& tensor = *found->second;
        if (tensor.shape != std::vector<int64_t>{config_.head_dim / 2} || tensor.type != GGML_TYPE_F32) {
            throw CheckpointError(path_, "tensor rope_freqs.weight has the shape " + shape_text(tensor.shape) +
                                             " and type " + tensor.type_name + ", expected (" +
                                             std::to_string(config_.head_dim / 2) + ") and f32");
        }
        config_.rope_factors.resize(static_cast<size_t>(config_.head_dim / 2));
        read(Location{file_of_.at("rope_freqs.weight"), &tensor, 0}, config_.rope_factors.data());
    }

    static ggml_to_float_t to_float(const GgufTensor& tensor) {
        return ggml_get_type_traits(static_cast<ggml_type>(tensor.type))->to_float;
    }

    /// Returns a row's index in Hugging Face's order. llama.cpp's converter interleaves the two halves of each head.
    static int64_t row_in_order(int64_t stored, int64_t n_rows, int64_t n_heads) {
        if (n_heads == 0) return stored;
        const int64_t d = n_rows / n_heads;
        const int64_t in_head = stored % d;
        return stored - in_head + in_head % 2 * (d / 2) + in_head / 2;
    }

    static void convert_row(const GgufTensor& tensor, const std::byte* raw, float* out, int64_t n, Scratch&) {
        if (tensor.type == GGML_TYPE_F32) {
            std::memcpy(out, raw, static_cast<size_t>(n) * sizeof(float));
        } else {
            to_float(tensor)(raw, out, n);
        }
    }

    static void convert_row(const GgufTensor& tensor, const std::byte* raw, uint16_t* out, int64_t n,
                            Scratch& scratch) {
        if (tensor.type == GGML_TYPE_BF16) {
            std::memcpy(out, raw, static_cast<size_t>(n) * sizeof(uint16_t));
            return;
        }
        scratch.row.resize(static_cast<size_t>(n));
        convert_row(tensor, raw, scratch.row.data(), n, scratch);
        for (int64_t i = 0; i < n; ++i) out[i] = kernels::bf16_from_float(scratch.row[static_cast<size_t>(i)]).bits;
    }

    template <typename Take>
    void each_row(const Location& at, int64_t n_rows, Take&& take) const {
        const GgufTensor& tensor = *at.tensor;
        const auto rows_per_task = static_cast<int64_t>(std::max<uint64_t>(1, bytes_per_task / tensor.row_bytes));
        const int64_t n_tasks = (n_rows + rows_per_task - 1) / rows_per_task;
        kernels::parallel_with_scratch<Scratch>(n_tasks, [&](int64_t task, Scratch& scratch) {
            const int64_t first = task * rows_per_task;
            const int64_t count = std::min(rows_per_task, n_rows - first);
            scratch.raw.resize(static_cast<uint64_t>(count) * tensor.row_bytes);
            at.file->read_at(tensor.offset + static_cast<uint64_t>(first) * tensor.row_bytes, scratch.raw);
            for (int64_t i = 0; i < count; ++i)
                take(row_in_order(first + i, n_rows, n_rows > 1 ? at.n_heads : 0),
                     scratch.raw.data() + static_cast<uint64_t>(i) * tensor.row_bytes, scratch);
        });
    }

    template <typename T>
    void read(const Location& at, T* out) const {
        const GgufTensor& tensor = *at.tensor;
        const bool is_vector = tensor.shape.size() < 2;
        const int64_t columns = tensor.shape.back();
        each_row(at, is_vector ? 1 : tensor.shape.front(), [&](int64_t row, const std::byte* raw, Scratch& scratch) {
            convert_row(tensor, raw, out + row * columns, columns, scratch);
        });
        if (is_vector && at.n_heads != 0) {
            const std::vector<T> stored(out, out + columns);
            for (int64_t i = 0; i < columns; ++i)
                out[row_in_order(i, columns, at.n_heads)] = stored[static_cast<size_t>(i)];
        }
    }

    fs::path path_;
    ModelConfig config_;
    std::vector<std::unique_ptr<GgufFile>> files_;
    GgufTensors tensors_;
    std::map<std::string, const FileReader*, std::less<>> file_of_;
    std::map<std::string, Location, std::less<>> locations_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_gguf(const fs::path& path) { return std::make_unique<GgufCheckpoint>(path); }

}  // namespace kvscope::checkpoint
