#include "engine/files/gguf_file.h"

#include <ggml.h>
#include <gguf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as little-endian");

constexpr uint64_t longest_text = uint64_t{1} << 28;

class Reader {
 public:
    explicit Reader(const FileReader& file) : file_(file) {}

    template <typename T>
    T value(const char* what) {
        T result{};
        bytes(&result, sizeof(T), what);
        return result;
    }

    std::string text(const char* what) {
        const auto size = value<uint64_t>(what);
        if (size > longest_text || size > file_.size() - at_) {
            fail(std::string(what) + " would have " + std::to_string(size) + " bytes at byte " + std::to_string(at_) +
                 " of a file of " + std::to_string(file_.size()));
        }
        std::string result(size, '\0');
        bytes(result.data(), size, what);
        return result;
    }

    /// Checks that the rest of the file has space for `count` items of at least `item_bytes` each.
    void expect_room(uint64_t count, uint64_t item_bytes, const std::string& what) const {
        if (count > (file_.size() - at_) / item_bytes) {
            fail(what + " would have " + std::to_string(count) + " entries at byte " + std::to_string(at_) +
                 " of a file of " + std::to_string(file_.size()) + " bytes");
        }
    }

    void skip(uint64_t n) {
        at_ += n;
        buffered_ = buffer_begin_ = 0;
    }

    uint64_t position() const { return at_; }

    [[noreturn]] void fail(const std::string& what) const {
        throw CheckpointError(file_.path(), what + ": the file is truncated or damaged");
    }

 private:
    void bytes(void* out, uint64_t n, const char* what) {
        if (n > file_.size() - at_) {
            fail("ends at byte " + std::to_string(file_.size()) + " within " + what);
        }
        auto* to = static_cast<std::byte*>(out);
        while (n > 0) {
            if (buffer_begin_ == buffered_) {
                buffer_.resize(std::min<uint64_t>(file_.size() - at_, uint64_t{1} << 18));
                file_.read_at(at_, buffer_);
                buffered_ = buffer_.size();
                buffer_begin_ = 0;
            }
            const uint64_t part = std::min<uint64_t>(n, buffered_ - buffer_begin_);
            std::memcpy(to, buffer_.data() + buffer_begin_, part);
            buffer_begin_ += part;
            at_ += part;
            to += part;
            n -= part;
        }
    }

    const FileReader& file_;
    uint64_t at_ = 0;
    std::vector<std::byte> buffer_;
    uint64_t buffered_ = 0;
    uint64_t buffer_begin_ = 0;
};

template <class T>
GgufValue read_number(Reader& in) {
    const T number = in.value<T>("a metadata value");
    if constexpr (std::is_floating_point_v<T>)
        return double{number};
    else if constexpr (std::is_signed_v<T>)
        return int64_t{number};
    else
        return uint64_t{number};
}

struct ValueType {
    uint64_t least_bytes = 0;
    GgufValue (*read)(Reader&) = nullptr;  ///< nullptr for arrays and unknown types
};

/// Types of values by the numbers of enum gguf_type.
constexpr ValueType value_types[] = {
    {1, read_number<uint8_t>},
    {1, read_number<int8_t>},
    {2, read_number<uint16_t>},
    {2, read_number<int16_t>},
    {4, read_number<uint32_t>},
    {4, read_number<int32_t>},
    {4, read_number<float>},
    {1, [](Reader& in) -> GgufValue { return in.value<uint8_t>("a metadata value") != 0; }},
    {8, [](Reader& in) -> GgufValue { return in.text("a metadata value"); }},
    {},
    {8, read_number<uint64_t>},
    {8, read_number<int64_t>},
    {8, read_number<double>}};
static_assert(std::size(value_types) == GGUF_TYPE_COUNT && GGUF_TYPE_STRING == 8 && GGUF_TYPE_FLOAT64 == 12);

const ValueType& value_type_of(uint32_t type) {
    return value_types[type < std::size(value_types) ? type : uint32_t{GGUF_TYPE_ARRAY}];
}

GgufValue read_value(Reader& in, uint32_t type, const std::string& key) {
    if (const auto read = value_type_of(type).read) return read(in);
    in.fail("metadata key " + key + " has a value of unknown type " + std::to_string(type));
}

double as_number(const GgufValue& value) {
    if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
    if (const auto* u = std::get_if<uint64_t>(&value)) return static_cast<double>(*u);
    if (const auto* b = std::get_if<bool>(&value)) return *b ? 1.0 : 0.0;
    return std::get<double>(value);
}

GgufArray read_array(Reader& in, const std::string& key) {
    GgufArray array;
    array.element_type = in.value<uint32_t>("an array's type");
    array.size = in.value<uint64_t>("an array's length");
    const bool is_text = array.element_type == GGUF_TYPE_STRING;
    const uint64_t item_bytes = value_type_of(array.element_type).least_bytes;
    if (item_bytes == 0) {
        in.fail("metadata key " + key + " is an array of the unknown type " + std::to_string(array.element_type));
    }
    in.expect_room(array.size, item_bytes, "the array " + key);
    if (is_text) {
        const bool keep = array.size <= GgufArray::longest_kept || key == "tokenizer.ggml.tokens";
        for (uint64_t i = 0; i < array.size; ++i) {
            std::string text = in.text("a text");
            if (keep) array.texts.push_back(std::move(text));
        }
    } else if (array.size <= GgufArray::longest_kept) {
        for (uint64_t i = 0; i < array.size; ++i) {
            array.numbers.push_back(as_number(read_value(in, array.element_type, key)));
        }
    } else {
        in.skip(array.size * item_bytes);
    }
    return array;
}

void check_magic(Reader& in, const FileReader& file) {
    if (file.size() < 24) {
        throw CheckpointError(file.path(),
                              "has " + std::to_string(file.size()) + " bytes; a GGUF file has at least 24");
    }
    const auto magic = in.value<std::array<char, 4>>("the magic number");
    if (std::memcmp(magic.data(), GGUF_MAGIC, 4) != 0) {
        std::string start(std::min<uint64_t>(file.size(), 24), '\0');
        file.read_at(0, std::as_writable_bytes(std::span<char>(start)));
        throw CheckpointError(file.path(), start.starts_with("version https://git-lfs")
                                               ? "is a Git LFS pointer, not the model: run `git lfs pull` in its folder"
                                               : "is not a GGUF file: it does not begin with \"GGUF\"");
    }
    const auto version = in.value<uint32_t>("the version");
    if (version != 0 && (version & 0xffffu) == 0) {
        throw CheckpointError(file.path(), "is a big-endian GGUF file; supported are little-endian files");
    }
    if (version < 2 || version > GGUF_VERSION) {
        throw CheckpointError(file.path(), "is of GGUF version " + std::to_string(version) + "; supported are 2 and " +
                                               std::to_string(GGUF_VERSION));
    }
}

GgufTensor read_tensor_info(Reader& in, const std::string& name) {
    GgufTensor tensor;
    const auto n_dims = in.value<uint32_t>("a tensor's number of dimensions");
    if (n_dims > GGML_MAX_DIMS) {
        in.fail("tensor " + name + " has " + std::to_string(n_dims) + " dimensions, expected at most " +
                std::to_string(GGML_MAX_DIMS));
    }
    int64_t n_elements = 1;
    for (uint32_t i = 0; i < n_dims; ++i) {
        const auto extent = in.value<int64_t>("a tensor's shape");
        if (extent < 0 || __builtin_mul_overflow(n_elements, extent, &n_elements)) {
            in.fail("tensor " + name + " has an impossible shape");
        }
        tensor.shape.insert(tensor.shape.begin(), extent);
    }
    const auto type = in.value<uint32_t>("a tensor's type");
    if (type >= GGML_TYPE_COUNT || ggml_blck_size(static_cast<ggml_type>(type)) == 0) {
        in.fail("tensor " + name + " is of the unknown type " + std::to_string(type));
    }
    const auto ggml = static_cast<ggml_type>(type);
    tensor.type = static_cast<int>(type);
    tensor.type_name = ggml_type_name(ggml);
    const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    const int64_t block = ggml_blck_size(ggml);
    if (columns % block != 0) {
        in.fail("tensor " + name + " of type " + tensor.type_name + " has rows of " + std::to_string(columns) +
                " values, expected a multiple of " + std::to_string(block));
    }
    const auto n_blocks = static_cast<uint64_t>(n_elements / block);
    if (__builtin_mul_overflow(n_blocks, ggml_type_size(ggml), &tensor.n_bytes)) {
        in.fail("tensor " + name + " has an impossible shape");
    }
    tensor.row_bytes = static_cast<uint64_t>(columns / block) * ggml_type_size(ggml);
    tensor.offset = in.value<uint64_t>("a tensor's offset");
    return tensor;
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path) : file_(path) {
    Reader in(file_);
    check_magic(in, file_);
    const auto n_tensors = in.value<uint64_t>("the number of tensors");
    const auto n_values = in.value<uint64_t>("the number of metadata keys");
    in.expect_room(n_values, 8 + 1 + 4 + 1, "the metadata");
    in.expect_room(n_tensors, 8 + 4 + 4 + 8, "the list of tensors");

    for (uint64_t i = 0; i < n_values; ++i) {
        std::string key = in.text("a metadata key");
        if (key.empty()) in.fail("has an empty metadata key");
        const auto type = in.value<uint32_t>("a metadata value's type");
        GgufValue value = type == GGUF_TYPE_ARRAY ? GgufValue(read_array(in, key)) : read_value(in, type, key);
        if (!values_.emplace(key, std::move(value)).second) in.fail("has the metadata key " + key + " twice");
    }

    const GgufValue* given = has("general.alignment") ? &values_.at("general.alignment") : nullptr;
    const auto* alignment_value = given == nullptr ? nullptr : std::get_if<uint64_t>(given);
    const uint64_t alignment = alignment_value == nullptr ? GGUF_DEFAULT_ALIGNMENT : *alignment_value;
    if ((given != nullptr && alignment_value == nullptr) || !std::has_single_bit(alignment) || alignment > UINT32_MAX) {
        in.fail("general.alignment is not a power of two");
    }

    std::vector<GgufTensor*> in_order;
    std::vector<std::string> names;
    for (uint64_t i = 0; i < n_tensors; ++i) {
        std::string name = in.text("a tensor's name");
        if (name.size() >= GGML_MAX_NAME) in.fail("a tensor's name has " + std::to_string(name.size()) + " bytes");
        const auto [position, inserted] = tensors_.emplace(name, read_tensor_info(in, name));
        if (!inserted) in.fail("has the tensor " + name + " twice");
        in_order.push_back(&position->second);
        names.push_back(std::move(name));
    }

    const uint64_t data_begin = (in.position() + alignment - 1) / alignment * alignment;
    uint64_t expected = 0;
    for (size_t i = 0; i < in_order.size(); ++i) {
        GgufTensor& tensor = *in_order[i];
        if (tensor.offset != expected) {
            in.fail("tensor " + names[i] + " is at byte " + std::to_string(tensor.offset) + " of the data, expected " +
                    std::to_string(expected));
        }
        const uint64_t available = file_.size() < data_begin ? 0 : file_.size() - data_begin;
        if (expected > available || tensor.n_bytes > available - expected) {
            in.fail("tensor " + names[i] + " needs bytes " + std::to_string(data_begin + expected) + " to " +
                    std::to_string(data_begin + expected + tensor.n_bytes) + " of a file of " +
                    std::to_string(file_.size()));
        }
        tensor.offset += data_begin;
        expected += (tensor.n_bytes + alignment - 1) / alignment * alignment;
    }
}

void GgufFile::fail(const std::string& what) const { throw CheckpointError(path(), what); }

void GgufFile::wrong_type(std::string_view key, const char* expected) const {
    fail("metadata key " + std::string(key) + " is not " + expected);
}

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    if (const auto* i = std::get_if<int64_t>(&found->second)) return *i;
    if (const auto* u = std::get_if<uint64_t>(&found->second); u != nullptr && *u <= INT64_MAX) {
        return static_cast<int64_t>(*u);
    }
    wrong_type(key, "a whole number");
}

std::optional<double> GgufFile::number(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    if (std::holds_alternative<std::string>(found->second) || std::holds_alternative<GgufArray>(found->second) ||
        std::holds_alternative<bool>(found->second)) {
        wrong_type(key, "a number");
    }
    const double value = as_number(found->second);
    if (!std::isfinite(value)) wrong_type(key, "a finite number");
    return value;
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    if (const auto* b = std::get_if<bool>(&found->second)) return *b;
    wrong_type(key, "true or false");
}

std::optional<std::string> GgufFile::text(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    if (const auto* s = std::get_if<std::string>(&found->second)) return *s;
    wrong_type(key, "a text");
}

const GgufArray* GgufFile::array(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : std::get_if<GgufArray>(&found->second);
}

}  // namespace kvscope::checkpoint
