#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/json.h"
#include "engine/files/checkpoint_error.h"
#include "tests/checkpoint/files.h"

namespace kvscope::checkpoint::testing {

/// Returns the message of the CheckpointError that `action` throws, or "". Other exceptions pass through.
template <typename Action>
[[nodiscard]] std::string refusal(Action&& action) {
    try {
        action();
    } catch (const CheckpointError& error) {
        return error.what();
    }
    return {};
}

struct StoredTensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string bytes;
};
using StoredTensors = std::map<std::string, StoredTensor>;

/// Returns a .safetensors file as bytes.
[[nodiscard]] inline std::string safetensors_bytes(const StoredTensors& tensors) {
    nlohmann::ordered_json header;
    std::string body;
    header["__metadata__"] = {{"format", "pt"}};
    for (const auto& [name, tensor] : tensors) {
        header[name] = {{"dtype", tensor.dtype},
                        {"shape", tensor.shape},
                        {"data_offsets", {body.size(), body.size() + tensor.bytes.size()}}};
        body += tensor.bytes;
    }
    const std::string text = header.dump();
    std::string size(8, '\0');
    const uint64_t n = text.size();
    std::memcpy(size.data(), &n, 8);
    return size + text + body;
}

inline StoredTensor f32_tensor(std::vector<int64_t> shape, float first = 0) {
    size_t n = 1;
    for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
    std::string bytes(n * 4, '\0');
    for (size_t i = 0; i < n; ++i) {
        const float value = first + static_cast<float>(i);
        std::memcpy(bytes.data() + 4 * i, &value, 4);
    }
    return {"F32", std::move(shape), std::move(bytes)};
}

/// Builds GGUF files key by key and tensor by tensor.
class GgufBuilder {
 public:
    template <typename T>
    GgufBuilder& key(const std::string& name, uint32_t type, T value) {
        put_text(keys_, name);
        put(keys_, type);
        put(keys_, value);
        ++n_keys_;
        return *this;
    }
    GgufBuilder& u32(const std::string& name, uint32_t value) { return key(name, 4, value); }
    GgufBuilder& f32(const std::string& name, float value) { return key(name, 6, value); }
    GgufBuilder& u16(const std::string& name, uint16_t value) { return key(name, 2, value); }
    GgufBuilder& text(const std::string& name, const std::string& value) {
        put_text(keys_, name);
        put(keys_, uint32_t{8});
        put_text(keys_, value);
        ++n_keys_;
        return *this;
    }
    GgufBuilder& texts(const std::string& name, const std::vector<std::string>& values) {
        put_text(keys_, name);
        put(keys_, uint32_t{9});
        put(keys_, uint32_t{8});
        put(keys_, uint64_t{values.size()});
        for (const std::string& value : values) put_text(keys_, value);
        ++n_keys_;
        return *this;
    }
    GgufBuilder& flags(const std::string& name, const std::vector<bool>& values) {
        put_text(keys_, name);
        put(keys_, uint32_t{9});
        put(keys_, uint32_t{7});
        put(keys_, uint64_t{values.size()});
        for (const bool value : values) put(keys_, static_cast<uint8_t>(value));
        ++n_keys_;
        return *this;
    }

    /// @param shape slowest dimension first
    GgufBuilder& tensor(const std::string& name, const std::vector<int64_t>& shape, uint32_t type,
                        const std::string& bytes) {
        put_text(infos_, name);
        put(infos_, static_cast<uint32_t>(shape.size()));
        for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) put(infos_, *extent);
        put(infos_, type);
        put(infos_, uint64_t{data_.size()});
        data_ += bytes;
        data_.resize((data_.size() + 31) / 32 * 32);
        ++n_tensors_;
        return *this;
    }
    GgufBuilder& f32_tensor(const std::string& name, const std::vector<int64_t>& shape, float first = 0) {
        return tensor(name, shape, 0, testing::f32_tensor(shape, first).bytes);
    }

    [[nodiscard]] std::string bytes() const {
        std::string all = "GGUF";
        put(all, uint32_t{3});
        put(all, n_tensors_);
        put(all, n_keys_);
        all += keys_ + infos_;
        all.resize((all.size() + 31) / 32 * 32);
        return all + data_;
    }

 private:
    template <typename T>
    static void put(std::string& to, T value) {
        to.append(reinterpret_cast<const char*>(&value), sizeof(T));
    }
    static void put_text(std::string& to, const std::string& value) {
        put(to, uint64_t{value.size()});
        to += value;
    }

    uint64_t n_keys_ = 0;
    uint64_t n_tensors_ = 0;
    std::string keys_;
    std::string infos_;
    std::string data_;
};

}  // namespace kvscope::checkpoint::testing
