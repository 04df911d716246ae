// A small trace with every data set, valid and always the same, for tests of its readers.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "trace/records/records.h"
#include "trace/writer.h"

namespace kvscope::trace::sample {

struct Options {
    std::int64_t n_layers = 3;
    std::int64_t n_heads = 4;
    std::int64_t n_kv_heads = 2;
    std::int64_t head_dim = 8;
    std::int64_t n_tokens = 48;
    std::int64_t window = 8;
    std::int64_t vocab_size = 64;
    int n_steps = 6;
    /// If above 1: number of prompts with a question each, all for one context.
    int n_questions = 1;

    [[nodiscard]] auto operator<=>(const Options&) const = default;
};

inline const std::string recipe = R"({"made_by": "sample_trace.h"})";

namespace detail {

// Uniform in [0, 1), the same on every machine.
class Random {
 public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}
    [[nodiscard]] float next() { return static_cast<float>(engine_() >> 8) / 16777216.0F; }
    [[nodiscard]] std::vector<float> vector(std::size_t count) {
        std::vector<float> out(count);
        for (float& value : out) value = next();
        return out;
    }

 private:
    std::mt19937 engine_;
};

[[nodiscard]] inline std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

// JSD of two distributions in nats.
[[nodiscard]] inline float jsd(const float* p, const float* q, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double m = 0.5 * (p[i] + q[i]);
        if (p[i] > 0) sum += 0.5 * p[i] * std::log(p[i] / m);
        if (q[i] > 0) sum += 0.5 * q[i] * std::log(q[i] / m);
    }
    return static_cast<float>(std::max(0.0, sum));
}

// (L, rows, rows) JSD between the rows of each layer of (L, rows, N), over the first `prefix` tokens.
[[nodiscard]] inline std::vector<float> head_jsd(const std::vector<float>& values, std::size_t layers, std::size_t rows,
                                                 std::size_t n, std::size_t prefix) {
    std::vector<float> normalised(values.size(), 0.0F);
    for (std::size_t r = 0; r < layers * rows; ++r) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(r * n);
        const float sum = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(prefix), 0.0F);
        for (std::size_t i = 0; i < prefix; ++i) normalised[r * n + i] = values[r * n + i] / sum;
    }
    std::vector<float> out(layers * rows * rows, 0.0F);
    for (std::size_t l = 0; l < layers; ++l) {
        for (std::size_t a = 0; a < rows; ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                const float value = jsd(&normalised[(l * rows + a) * n], &normalised[(l * rows + b) * n], prefix);
                out[(l * rows + a) * rows + b] = value;
                out[(l * rows + b) * rows + a] = value;
            }
        }
    }
    return out;
}

// (L, heads, d) contributions whose sum in each head is the layer's similarity.
[[nodiscard]] inline std::vector<float> modes(Random& random, const std::vector<float>& similarities,
                                              std::int64_t heads, std::int64_t d) {
    std::vector<float> out;
    for (const float similarity : similarities) {
        for (std::int64_t head = 0; head < heads; ++head) {
            const std::vector<float> shares = random.vector(size(d));
            const float sum = std::accumulate(shares.begin(), shares.end(), 0.0F);
            for (const float share : shares) out.push_back(similarity * share / sum);
        }
    }
    return out;
}

// (matrices, rows, rows), symmetric, in [-0.5, 0.5), diagonal 1.
[[nodiscard]] inline std::vector<float> cosines(Random& random, std::int64_t matrices, std::int64_t rows) {
    std::vector<float> out(size(matrices * rows * rows), 1.0F);
    for (std::int64_t m = 0; m < matrices; ++m)
        for (std::int64_t a = 0; a < rows; ++a)
            for (std::int64_t b = 0; b < a; ++b)
                out[size((m * rows + a) * rows + b)] = out[size((m * rows + b) * rows + a)] = random.next() - 0.5F;
    return out;
}

inline void add_projection_measures(PromptRecord& p, const Options& o) {
    Random random(4);
    p.mode_contribution_q = modes(random, p.adjacent_similarity_q, o.n_heads, o.head_dim);
    p.mode_contribution_k = modes(random, p.adjacent_similarity_k, o.n_kv_heads, o.head_dim);
    p.mode_contribution_v = modes(random, p.adjacent_similarity_v, o.n_kv_heads, o.head_dim);
    p.layer_similarity_k = cosines(random, 1, o.n_layers);
    p.layer_similarity_v = cosines(random, 1, o.n_layers);
    p.head_similarity_k = cosines(random, o.n_layers, o.n_kv_heads);
    p.head_similarity_v = cosines(random, o.n_layers, o.n_kv_heads);
    for (auto* alignment : {&p.gradient_alignment_c11, &p.gradient_alignment_c12, &p.gradient_alignment_c22}) {
        *alignment = random.vector(size(o.n_layers * o.n_heads));
        for (float& cosine : *alignment) cosine = 0.2F * cosine - 0.1F;
    }
}

}  // namespace detail

[[nodiscard]] inline ModelRecord model(const Options& o = {}) {
    detail::Random random(1);
    ModelRecord m;
    m.name = "sample";
    m.family = "llama";
    m.fingerprint = std::string(64, 'a');
    m.dtype = "f32";
    m.n_layers = o.n_layers;
    m.n_heads = o.n_heads;
    m.n_kv_heads = o.n_kv_heads;
    m.head_dim = o.head_dim;
    m.hidden_size = o.n_heads * o.head_dim;
    m.vocab_size = o.vocab_size;
    m.rope_theta = 10000;
    m.config_json = R"({"model_type": "llama"})";
    const auto spectrum = [&](std::int64_t rows, std::int64_t length) {
        std::vector<float> out = random.vector(detail::size(rows * length));
        for (std::int64_t r = 0; r < rows; ++r) {
            std::sort(out.begin() + r * length, out.begin() + (r + 1) * length, std::greater<>());
        }
        return out;
    };
    m.spectrum_q = spectrum(m.n_layers, m.hidden_size);
    m.spectrum_k = spectrum(m.n_layers, m.hidden_size);
    m.spectrum_v = spectrum(m.n_layers, m.hidden_size);
    m.head_spectrum_q = spectrum(m.n_layers * m.n_heads, m.head_dim);
    m.head_spectrum_k = spectrum(m.n_layers * m.n_kv_heads, m.head_dim);
    m.head_spectrum_v = spectrum(m.n_layers * m.n_kv_heads, m.head_dim);
    return m;
}

/// `question` counts from 0. Prompts from 1 on share the context of prompt 0.
[[nodiscard]] inline PromptRecord prompt(const Options& o = {}, int question = 0) {
    detail::Random random(2);
    const bool asked = o.n_questions > 1;
    const auto layers = detail::size(o.n_layers);
    const auto heads = detail::size(o.n_heads);
    PromptRecord p;
    p.name = asked ? "sample, question " + std::to_string(question) : "sample";
    p.n_context = o.n_tokens;
    p.n_tokens = o.n_tokens + (asked ? 4 + question : 0);
    p.question = asked ? "What is it, " + std::to_string(question) + "?" : "";
    p.chat_template = "{{ messages[0].content }}";
    p.query_aware = !asked;
    p.eos_ids = {2};
    if (question > 0) p.context_of = 0;
    p.window = o.window;
    for (std::int64_t i = 0; i < p.n_tokens; ++i) {
        p.token_ids.push_back(static_cast<std::int32_t>((i * 7 + 3) % o.vocab_size));
        p.token_text.push_back(i % 5 == 0 ? " \u00e9t\u00e9" : " w" + std::to_string(i));
        p.text += p.token_text.back();
    }
    const auto n = detail::size(p.visible_tokens());
    const auto w = detail::size(o.window);
    p.window_attention = random.vector(layers * heads * n);
    for (std::size_t row = 0; row < layers * heads; ++row) {
        float* values = &p.window_attention[row * n];
        for (std::size_t i = 0; i < n; ++i) values[i] = std::pow(values[i], 6.0F) + (i < 2 ? 0.5F : 1e-4F);
        const float sum = std::accumulate(values, values + n, 0.0F);
        for (std::size_t i = 0; i < n; ++i) values[i] /= sum;
    }
    p.query_similarity.assign(layers * heads * w * w, 1.0F);
    for (std::size_t row = 0; row < layers * heads; ++row) {
        for (std::size_t a = 0; a < w; ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                const float value = 0.5F + 0.5F * random.next();
                p.query_similarity[(row * w + a) * w + b] = value;
                p.query_similarity[(row * w + b) * w + a] = value;
            }
        }
    }
    p.adjacent_similarity_q = random.vector(layers);
    p.adjacent_similarity_k = random.vector(layers);
    p.adjacent_similarity_v = random.vector(layers);
    detail::add_projection_measures(p, o);
    p.head_jsd = detail::head_jsd(p.window_attention, layers, heads, n, n - w);
    p.last_logits = detail::Random(static_cast<std::uint32_t>(10 + question)).vector(detail::size(o.vocab_size));
    return p;
}

/// The run of the policy `full`.
[[nodiscard]] inline RunRecord full_run(const Options& o, const PromptRecord& p) {
    const auto layers = detail::size(o.n_layers);
    const auto rows = detail::size(o.n_kv_heads);
    const auto n = detail::size(p.visible_tokens());
    const auto steps = detail::size(o.n_steps);
    RunRecord r;
    r.policy = "full";
    r.label = "full";
    r.parameters_json = "{}";
    r.budget = p.visible_tokens();
    r.budget_fraction = 1;
    r.prefill_s = 0.5;
    r.output_text = "the full cache's answer";
    r.kept_offsets = {0};
    for (std::size_t row = 0; row < layers * rows; ++row) {
        for (std::size_t i = 0; i < n; ++i) r.kept_indices.push_back(static_cast<std::uint32_t>(i));
        r.kept_offsets.push_back(r.kept_indices.size());
    }
    for (std::size_t t = 0; t < steps; ++t) r.output_ids.push_back(static_cast<std::int32_t>(5 + t));
    r.step_kl.assign(steps, 0.0F);
    r.step_agreement.assign(steps, 1);
    r.attention_kept.assign(layers * detail::size(o.n_heads), 1.0F);
    r.output_error.assign(layers * detail::size(o.n_heads), 0.0F);
    const std::uint64_t bytes = n * detail::size(o.head_dim) * 2 * 4;
    r.head_bytes.assign(layers * rows, bytes);
    r.cache_bytes.assign(layers, bytes * rows);
    r.cache_bytes_predicted = r.cache_bytes;
    return r;
}

/// Keeps, in every row, the window and the best random scores, `budget` entries in total.
[[nodiscard]] inline RunRecord selecting_run(const Options& o, const PromptRecord& p, const std::string& policy,
                                             std::int64_t budget) {
    detail::Random random(static_cast<std::uint32_t>(100 + budget));
    RunRecord r = full_run(o, p);
    const auto layers = detail::size(o.n_layers);
    const auto heads = detail::size(o.n_heads);
    const auto rows = detail::size(o.n_kv_heads);
    const auto n = detail::size(p.visible_tokens());
    const auto prefix = n - detail::size(o.window);
    const auto free = detail::size(budget - o.window);
    r.policy = policy;
    r.label = policy + " " + std::to_string(budget);
    r.parameters_json = R"({"window": )" + std::to_string(o.window) + "}";
    r.budget = budget;
    r.budget_fraction = static_cast<double>(budget) / static_cast<double>(n);
    r.window = o.window;
    r.select_s = 0.01;
    r.output_text = policy + " says something else";
    r.output_ids.back() = 2;
    r.scores.assign(layers * rows * n, std::nanf(""));
    r.kept_indices.clear();
    r.kept_offsets = {0};
    for (std::size_t row = 0; row < layers * rows; ++row) {
        float* scores = &r.scores[row * n];
        for (std::size_t i = 0; i < prefix; ++i) scores[i] = random.next();
        std::vector<std::uint32_t> order(prefix);
        std::iota(order.begin(), order.end(), 0U);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
        order.resize(std::min(free, prefix));
        std::sort(order.begin(), order.end());
        for (std::size_t i = prefix; i < n; ++i) order.push_back(static_cast<std::uint32_t>(i));
        r.kept_indices.insert(r.kept_indices.end(), order.begin(), order.end());
        r.kept_offsets.push_back(r.kept_indices.size());
    }
    for (std::size_t l = 0; l < layers; ++l) {
        for (std::size_t h = 0; h < heads; ++h) {
            const std::size_t row = l * rows + h * rows / heads;
            float kept = 0;
            for (std::uint64_t i = r.kept_offsets[row]; i < r.kept_offsets[row + 1]; ++i) {
                const float share =
                    p.window_attention.empty() ? 0.0F : p.window_attention[(l * heads + h) * n + r.kept_indices[i]];
                kept += share;
            }
            r.attention_kept[l * heads + h] = std::min(kept, 1.0F);
            r.output_error[l * heads + h] = 0.2F * random.next();
        }
        for (std::size_t row = l * rows; row < (l + 1) * rows; ++row) {
            r.head_bytes[row] = (r.kept_offsets[row + 1] - r.kept_offsets[row]) * detail::size(o.head_dim) * 2 * 4;
        }
        const auto begin = r.head_bytes.begin() + static_cast<std::ptrdiff_t>(l * rows);
        r.cache_bytes_predicted[l] =
            std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(rows), std::uint64_t{0});
        r.cache_bytes[l] = (r.cache_bytes_predicted[l] + 63) / 64 * 64;
    }
    for (float& kl : r.step_kl) kl = 0.3F * random.next();
    r.step_agreement.back() = 0;
    r.kl_attention_lost = random.vector(layers * n);
    for (float& lost : r.kl_attention_lost) lost *= 0.02F;
    return r;
}

/// full, two runs of snapkv, one of aperturekv (f64 scores, head_jsd), one with merged entries in isolated mode, one
/// with dropped channels, one failed.
[[nodiscard]] inline std::vector<RunRecord> runs(const Options& o, const PromptRecord& p) {
    const auto layers = detail::size(o.n_layers);
    const auto rows = detail::size(o.n_kv_heads);
    const auto n = detail::size(p.visible_tokens());
    std::vector<RunRecord> out;
    out.push_back(full_run(o, p));
    out.back().answer_attention = detail::Random(3).vector(layers * rows * n);
    out.push_back(selecting_run(o, p, "snapkv", 16));
    out.push_back(selecting_run(o, p, "snapkv", 24));

    RunRecord aperture = selecting_run(o, p, "aperturekv", 20);
    aperture.scores_f64.assign(aperture.scores.begin(), aperture.scores.end());
    std::vector<float> candidates = aperture.scores;
    for (float& score : candidates) score = std::isnan(score) ? 0.0F : score;
    aperture.head_jsd = detail::head_jsd(candidates, layers, rows, n, n - detail::size(o.window));
    aperture.scores.clear();
    out.push_back(aperture);

    RunRecord merged = selecting_run(o, p, "kvslimmer", 12);
    merged.scores.clear();
    merged.mode = "isolated";
    merged.first_token_s = 0.25;
    merged.decode_s = 0.5;
    merged.decode_tokens_per_s = 12;
    merged.peak_bytes = 1 << 20;
    merged.merged_cardinality.assign(merged.kept_indices.size(), 1);
    merged.merged_token_entry.assign(layers * rows * n, -1);
    merged.merged_keys.assign(layers, 24);
    merged.merged_keys_outside.assign(layers, 2);
    for (std::size_t row = 0; row < layers * rows; ++row) {
        // Each token goes into the next entry that ends at or after it.
        std::size_t entry = 0;
        const std::size_t begin = merged.kept_offsets[row];
        const std::size_t count = merged.kept_offsets[row + 1] - begin;
        std::vector<float> tokens(count, 0);
        for (std::size_t i = 0; i < n; ++i) {
            while (entry + 1 < count && merged.kept_indices[begin + entry] < i) ++entry;
            merged.merged_token_entry[row * n + i] = static_cast<std::int32_t>(entry);
            ++tokens[entry];
        }
        std::copy(tokens.begin(), tokens.end(), merged.merged_cardinality.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    out.push_back(merged);

    RunRecord think = full_run(o, p);
    think.policy = think.label = "think";
    think.parameters_json = R"({"ratio": 0.5})";
    for (std::size_t i = 0; i < layers * rows * detail::size(o.head_dim); ++i) {
        think.channels_kept.push_back(i % 2 == 0 ? 1 : 0);
    }
    think.budget_of = "bytes";
    think.budget_fraction = 0.75;
    think.channel_scores = detail::Random(5).vector(layers * rows * detail::size(o.head_dim));
    think.stored_entries.assign(layers * rows, static_cast<std::uint32_t>(n) - 4);
    think.stored_key_width.assign(layers * rows, static_cast<float>(o.head_dim) / 2);
    think.stored_value_width.assign(layers * rows, static_cast<float>(o.head_dim));
    think.stored_key_error.assign(layers * rows, 0.25F);
    think.stored_value_error.assign(layers * rows, 0);
    think.stored_whole_bytes.assign(layers, 0);
    think.stored_channel_bytes = think.cache_bytes_predicted;
    out.push_back(think);

    RunRecord failed;
    failed.policy = "snapkv";
    failed.label = "snapkv 4";
    failed.parameters_json = "{}";
    failed.budget = 4;
    failed.budget_fraction = 4.0 / static_cast<double>(n);
    failed.window = o.window;
    failed.status = "failed";
    failed.message = "expected a budget above the window";
    out.push_back(failed);
    return out;
}

/// Writes the items of the sample that are missing, without finishing the trace.
inline void write_parts(Writer& writer, const Options& o = {}) {
    if (!writer.has_model()) writer.write_model(model(o));
    for (int i = 0; i < o.n_questions; ++i) {
        const PromptRecord p = prompt(o, i);
        if (!writer.has_prompt(i)) writer.write_prompt(i, p);
        const std::vector<RunRecord> all = runs(o, p);
        for (int j = 0; j < static_cast<int>(all.size()); ++j) {
            if (!writer.has_run(i, j)) writer.write_run(i, j, all[detail::size(j)]);
        }
    }
}

/// Results of a needle task with two lengths and two depths: full answers all, snapkv at 24 those of length 100, at 48
/// all except one, aperturekv with another window none and fails in one.
[[nodiscard]] inline std::vector<ResultRow> results() {
    std::vector<ResultRow> rows;
    for (const std::int64_t length : {100, 200}) {
        for (const double depth : {0.1, 0.9}) {
            ResultRow row;
            row.sample_id = "needle-" + std::to_string(length) + (depth < 0.5 ? "-a" : "-b");
            row.metric = "contains";
            row.answers_json = "[\"58\"]";
            row.parameters_json = "{}";
            row.length = length;
            row.depth = depth;
            const auto add = [&](const std::string& policy, std::int64_t budget, double score) {
                row.policy = policy;
                row.budget = budget;
                row.score = score;
                row.cause = score < 0.5 && policy != "full" ? "kept" : "";
                rows.push_back(row);
            };
            add("full", length, 1);
            add("snapkv", 24, length == 100);
            add("snapkv", 48, length == 100 || depth < 0.5);
            row.parameters_json = "{\"window\": 4}";
            if (length == 200 && depth > 0.5) row.status = "failed";
            add("aperturekv", 24, 0);
        }
    }
    return rows;
}

/// Writes a complete trace to `path` with the Writer and replaces an existing file.
inline void write_anew(const std::filesystem::path& path, const Options& o = {}) {
    Writer writer(path, recipe, {.force = true, .generator = "sample"});
    write_parts(writer, o);
    writer.write_results("niah", 0, results());
    writer.finish();
}

/// Does the same, but writes a trace with the same options only once. Later calls copy its bytes, which is faster.
inline void write(const std::filesystem::path& path, const Options& o = {}) {
    static std::map<Options, std::string> written;
    std::string& bytes = written[o];
    if (bytes.empty()) {
        write_anew(path, o);
        std::ifstream file(path, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(file), {});
        return;
    }
    const std::filesystem::path copy = path.string() + ".copy";
    std::ofstream(copy, std::ios::binary) << bytes;
    std::filesystem::rename(copy, path);  // an open trace keeps its bytes
}

/// A complete trace of one prompt with `full` and runs that keep the given numbers of entries, without
/// answer_attention.
inline void write_runs(const std::filesystem::path& path,
                       const std::vector<std::pair<std::string, std::int64_t>>& policies_at_budgets) {
    Writer writer(path, recipe, {.generator = "sample"});
    const Options o;
    const PromptRecord p = prompt(o);
    writer.write_model(model(o));
    writer.write_prompt(0, p);
    writer.write_run(0, 0, full_run(o, p));
    int run = 0;
    for (const auto& [policy, budget] : policies_at_budgets)
        writer.write_run(0, ++run, selecting_run(o, p, policy, budget));
    writer.finish();
}

using kvscope::TemporaryFolder;

}  // namespace kvscope::trace::sample
