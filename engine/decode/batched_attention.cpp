#include "engine/decode/batched_attention.h"

#include <numeric>

#include "engine/device/tensor_functions.h"

namespace kvscope::engine {

void BatchedAttention::begin(at::Tensor of_qkv, at::Tensor of_plain, at::Tensor of_out) {
    qkv = std::move(of_qkv);
    plain = std::move(of_plain);
    out = std::move(of_out);
    work = {};
    rotations.clear();
    turns.clear();
    comparisons.clear();
}

const Transformer::Rotation& BatchedAttention::rotation_to(int64_t first, int64_t n) {
    auto& known = rotations[{first, n}];
    if (known.cosines.defined()) return known;
    std::vector<int64_t> to(static_cast<size_t>(n));
    std::iota(to.begin(), to.end(), first);
    return known = model->rotation(to);
}

const Transformer::Rotation& BatchedAttention::turn_by(int64_t by, int64_t n) {
    auto& known = turns[{by, n}];
    if (known.cosines.defined()) return known;
    return known = model->turn(std::vector<int64_t>(static_cast<size_t>(n), by));
}

void BatchedAttention::rotate(void* data, int n_heads, int64_t token_stride, const Transformer::Rotation& by) const {
    model->backend().rope(rope_of(by, model->dtype(), n_heads, data, token_stride));
}

void BatchedAttention::queue(const RunCache::RowView& view, const void* q, int queries, void* out_row, float* weights,
                             Work& to, bool continues) const {
    to.rows.push_back({.q = q,
                       .q_stride = d(),
                       .n_queries = queries,
                       .k = view.keys,
                       .v = view.values,
                       .k_stride = d(),
                       .v_stride = d(),
                       .n_entries = view.n_entries,
                       .continues = continues,
                       .out = out_row,
                       .out_stride = d(),
                       .attention = weights});
}

bool BatchedAttention::queue(std::vector<StoredEntries::Attended> stored, const void* q, int queries, void* out_row,
                             Work& to) const {
    bool continues = false;
    for (auto& entries : stored) {
        kernels::DecodeRow row = to.stored.emplace_back(std::move(entries)).row;
        row.q = q;
        row.q_stride = d();
        row.n_queries = queries;
        row.out = out_row;
        row.out_stride = d();
        row.continues = continues;
        const auto channels = to.stored.back().key_channels;
        if (!channels.empty()) {
            row.q = on_channels(static_cast<const char*>(q), queries, channels, to);
            row.q_stride = static_cast<int64_t>(channels.size());
        }
        to.rows.push_back(row);
        continues = true;
    }
    return continues;
}

/// Copies the given channels of queries (queries, d) to the processor's memory, (queries, channels).
const void* BatchedAttention::on_channels(const char* q, int queries, std::span<const uint16_t> channels,
                                          Work& to) const {
    const size_t element = kernels::size_of(model->dtype());
    auto& some = to.queries.emplace_back(static_cast<size_t>(queries) * channels.size() * element);
    char* next = some.data();
    for (int64_t query = 0; query < queries; ++query)
        next = copy_channels(q + static_cast<size_t>(query * d()) * element, shape.head_dim, channels, element, next);
    return some.data();
}

void BatchedAttention::attend(Work& all) const {
    const kernels::Backend& backend = model->backend();
    backend.copy_rows(all.appended);
    backend.attention_prefill(all.blocks);
    backend.attention_decode(all.rows, shape.head_dim, model->dtype(), model->attention_scale());
}

BatchedAttention::Comparison& BatchedAttention::begin_comparison(const AttentionReference& reference, int layer,
                                                                 size_t sequence, int64_t token, int64_t n,
                                                                 const RowColumns& columns, int64_t position) {
    const int64_t width = columns.queries * d();
    const auto of_row = [&](const std::vector<at::Tensor>& layers) {
        return layers[static_cast<size_t>(layer)]
            .narrow(0, token, n)
            .narrow(1, columns.query, width)
            .to(model->device().place);
    };
    auto& comparison = comparisons.emplace_back();
    comparison.sequence = sequence;
    comparison.first_head = static_cast<int>(columns.query / d());
    comparison.expected = of_row(reference.outputs);
    comparison.queries = of_row(reference.queries);
    comparison.found = at::empty({n, width}, comparison.queries.options());
    const int64_t by = position - (reference.first_position + token);
    if (by != 0) {
        comparison.queries = comparison.queries.clone(at::MemoryFormat::Contiguous);
        rotate(comparison.queries.data_ptr(), columns.queries, width, turn_by(by, n));
    }
    return comparison;
}

void BatchedAttention::add_errors(int layer, std::span<OutputErrors> errors) const {
    if (comparisons.empty()) return;
    std::vector<std::vector<double>> found;
    std::vector<kernels::RowErrors> problems;
    for (const auto& comparison : comparisons) {
        const int64_t n = comparison.found.size(0);
        const auto n_heads = static_cast<int>(comparison.found.size(1) / d());
        problems.push_back({.dtype = model->dtype(),
                            .n_rows = n,
                            .n_heads = n_heads,
                            .head_dim = shape.head_dim,
                            .found = comparison.found.const_data_ptr(),
                            .found_stride = comparison.found.stride(0),
                            .expected = comparison.expected.const_data_ptr(),
                            .expected_stride = comparison.expected.stride(0),
                            .errors = found.emplace_back(static_cast<size_t>(n * n_heads)).data()});
    }
    model->backend().row_errors(problems);
    for (size_t i = 0; i < problems.size(); ++i) {
        const auto& comparison = comparisons[i];
        double* sums = errors[comparison.sequence].data() + layer * shape.n_heads + comparison.first_head;
        const double* error = found[i].data();
        for (int64_t t = 0; t < problems[i].n_rows; ++t)
            for (int h = 0; h < problems[i].n_heads; ++h) sums[h] += *error++;
    }
}

}  // namespace kvscope::engine
