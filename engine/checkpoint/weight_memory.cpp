#include "engine/checkpoint/weight_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace kvscope::checkpoint {
namespace {

bool is_of_numbers(const std::string& stored_type) {
    const std::string_view types[] = {"f32", "F32", "f16", "F16", "bf16", "BF16"};
    return std::find(std::begin(types), std::end(types), stored_type) != std::end(types);
}

/// Groups of a layer's tensors that `load_weights` stacks. Neighbors in the same format are expanded together.
const std::vector<std::vector<std::string>>& stacks() {
    static const std::vector<std::vector<std::string>> all = {
        {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
        {"mlp.gate_proj.weight", "mlp.up_proj.weight"}};
    return all;
}

}  // namespace

kernels::WeightFormat held_format(const std::string& stored_type, int64_t columns, kernels::DType dtype) {
    using kernels::WeightFormat;
    static const std::map<std::string, WeightFormat> known = {
        {"f16", WeightFormat::f16},   {"F16", WeightFormat::f16},   {"bf16", WeightFormat::bf16},
        {"BF16", WeightFormat::bf16}, {"q4_0", WeightFormat::q4_0}, {"q4_1", WeightFormat::q4_1},
        {"q5_0", WeightFormat::q5_0}, {"q5_1", WeightFormat::q5_1}, {"q8_0", WeightFormat::q8_0},
        {"q2_K", WeightFormat::q2_k}, {"q3_K", WeightFormat::q3_k}, {"q4_K", WeightFormat::q4_k},
        {"q5_K", WeightFormat::q5_k}, {"q6_K", WeightFormat::q6_k}};
    const WeightFormat plain = kernels::weight_format_of(dtype);
    const auto found = known.find(stored_type);
    if (found == known.end() || columns % kernels::block_size_of_format(found->second).n != 0) return plain;
    return kernels::row_bytes(found->second, columns) < kernels::row_bytes(plain, columns) ? found->second : plain;
}

WeightBytes count_weight_bytes(const Checkpoint& checkpoint, kernels::DType dtype) {
    WeightBytes bytes;
    std::set<std::string> written_out;
    struct Numbers {
        kernels::WeightFormat format = {};
        int64_t bytes = 0;
    };
    std::map<std::string, Numbers> numbers;  // for tensors that are expanded during multiplication
    for (const auto& tensor : checkpoint.tensors()) {
        if (tensor.shape.size() < 2) {
            for (const int64_t n : tensor.shape) bytes.held += n * static_cast<int64_t>(sizeof(float));
            continue;
        }
        const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
        const auto format = held_format(tensor.stored_type, columns, dtype), plain = kernels::weight_format_of(dtype);
        bytes.held += rows * static_cast<int64_t>(kernels::row_bytes(format, columns));
        if (format != plain) {
            const int64_t as_numbers = rows * static_cast<int64_t>(kernels::row_bytes(plain, columns));
            numbers[tensor.name] = {format, as_numbers};
            bytes.largest = std::max(bytes.largest, as_numbers);
        } else if (!is_of_numbers(tensor.stored_type)) {
            written_out.insert(tensor.stored_type);
        }
    }
    for (int layer = 0; layer < checkpoint.config().n_layers; ++layer)
        for (const auto& stack : stacks()) {
            Numbers together;
            for (const std::string& name : stack) {
                const auto found = numbers.find("model.layers." + std::to_string(layer) + "." + name);
                const Numbers one = found == numbers.end() ? Numbers{} : found->second;
                together = {one.format, one.bytes + (one.format == together.format ? together.bytes : 0)};
                bytes.largest = std::max(bytes.largest, together.bytes);
            }
        }
    bytes.written_out.assign(written_out.begin(), written_out.end());
    return bytes;
}

}  // namespace kvscope::checkpoint
