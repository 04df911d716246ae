// Makes traces of any size to test the app. Attention and scores are made up; the policies are the program's own.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <numbers>
#include <numeric>

#include "common/json.h"
#include "made_up_results.h"
#include "made_up_text.h"
#include "policies/registry/registry.h"
#include "policies/registry/reselect.h"
#include "random.h"
#include "trace/writer.h"

namespace kvscope::bench {

namespace {

struct Options {
    std::size_t tokens = 131072;
    std::size_t layers = 32;
    std::size_t heads = 32;
    std::size_t kv_heads = 8;
    std::size_t head_dim = 128;
    std::size_t runs = 4;
    std::int64_t budget = 2048;
    bool scores = false;
    bool attention = false;
    std::size_t samples = 0;
    std::uint64_t seed = 1;
    std::filesystem::path output;
    bool force = false;

    [[nodiscard]] std::string recipe() const {
        return nlohmann::json{{"made_up", true},        {"tokens", tokens},     {"layers", layers},
                              {"heads", heads},         {"kv_heads", kv_heads}, {"head_dim", head_dim},
                              {"runs", runs},           {"budget", budget},     {"scores", scores},
                              {"attention", attention}, {"samples", samples},   {"seed", seed}}
            .dump();
    }
};

constexpr std::size_t window = 32;
constexpr std::size_t steps = 64;
constexpr const char* policy_names[] = {"snapkv", "ada-snapkv", "pyramidkv", "h2o", "ada-pyramidkv"};

// Each use of random numbers has its own stream.
enum Stream : std::uint64_t { text, cluster_places, layer_interest, row_interest, run_interest, noise, model, answers };

class MadeUpModel {
 public:
    explicit MadeUpModel(const Options& options) : o_(options) {
        Random random(o_.seed, Stream::cluster_places);
        for (std::size_t i = 0; i < std::max<std::size_t>(8, o_.tokens / 96); ++i) {
            const float u = random.uniform();
            clusters_.push_back({random.below(o_.tokens), 1 + random.below(14), u * u * u});
        }
    }

    /// Writes a head's attention to each position (N): noise, with more attention to clusters and to both ends.
    /// @param head 0 for a KV head, else 1 + query head within its group @param run 0 for exact attention
    void interest(std::size_t layer, std::size_t row, std::size_t head, std::size_t run, float* out) const {
        Random by_layer(o_.seed, Stream::layer_interest, layer);
        Random by_row(o_.seed, Stream::row_interest, layer, row);
        Random by_run(o_.seed, Stream::run_interest, run * 64 + head, layer * 4096 + row);
        Random grain(o_.seed, Stream::noise, run * 64 + head, layer * 4096 + row);
        const auto n = static_cast<std::ptrdiff_t>(o_.tokens);
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const float u = grain.uniform();
            out[i] = 0.05F * u * u * u * u + 0.5F / static_cast<float>(n - i + 4);
        }
        for (std::ptrdiff_t i = 0; i < std::min<std::ptrdiff_t>(n, 4); ++i) out[i] += 4;
        for (const Cluster& cluster : clusters_) {
            const float a = by_layer.uniform(), b = by_row.uniform(), c = by_run.uniform();
            const float strength = cluster.strength * (0.4F * a * a + 0.6F * b * b * b) * (0.4F + 0.6F * c);
            const auto middle = static_cast<std::ptrdiff_t>(cluster.middle);
            const auto width = static_cast<std::ptrdiff_t>(cluster.width);
            for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, middle - width + 1); i < std::min(n, middle + width);
                 ++i) {
                out[i] += strength * (1 - static_cast<float>(std::abs(i - middle)) / static_cast<float>(width));
            }
        }
    }

    /// Returns a layer's attention (H, N). Each row has the sum 1.
    [[nodiscard]] std::vector<float> attention(std::size_t layer) const {
        std::vector<float> out(o_.heads * o_.tokens);
        const std::size_t group = o_.heads / o_.kv_heads;
#pragma omp parallel for schedule(dynamic)
        for (std::size_t head = 0; head < o_.heads; ++head) {
            float* row = out.data() + head * o_.tokens;
            interest(layer, head / group, head % group + 1, 0, row);
            const double sum = std::accumulate(row, row + o_.tokens, 0.0);
            for (std::size_t i = 0; i < o_.tokens; ++i) row[i] = static_cast<float>(row[i] / sum);
        }
        return out;
    }

    /// Returns a layer's scores (R, N). @param masked number of tokens at the end whose scores are NaN
    [[nodiscard]] std::vector<float> scores(std::size_t layer, std::size_t run, std::size_t masked) const {
        std::vector<float> out(o_.kv_heads * o_.tokens);
#pragma omp parallel for schedule(dynamic)
        for (std::size_t row = 0; row < o_.kv_heads; ++row) {
            float* values = out.data() + row * o_.tokens;
            interest(layer, row, 0, run, values);
            std::fill_n(values + o_.tokens - masked, masked, std::numeric_limits<float>::quiet_NaN());
        }
        return out;
    }

 private:
    struct Cluster {
        std::size_t middle, width;
        float strength;
    };
    const Options& o_;
    std::vector<Cluster> clusters_;
};

std::vector<float> falling(Random& random, std::size_t rows, std::size_t length) {
    std::vector<float> out;
    for (std::size_t row = 0; row < rows; ++row) {
        float value = 50 + 50 * random.uniform();
        for (std::size_t i = 0; i < length; ++i) {
            out.push_back(value);
            value *= 1 - 0.05F * random.uniform();
        }
    }
    return out;
}

// Returns `count` symmetric matrices (n, n). Values go from `same` on the diagonal to about `far` in the corners.
std::vector<float> matrices(Random& random, std::size_t count, std::size_t n, float same, float far) {
    std::vector<float> out(count * n * n, same);
    for (std::size_t m = 0; m < count; ++m) {
        for (std::size_t a = 0; a < n; ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                const float distance = static_cast<float>(a - b) / static_cast<float>(n);
                const float value = same + (far - same) * (0.2F + 0.5F * distance + 0.3F * random.uniform());
                out[(m * n + a) * n + b] = out[(m * n + b) * n + a] = value;
            }
        }
    }
    return out;
}

std::vector<float> uniform(Random& random, std::size_t count, float low, float high) {
    std::vector<float> out(count);
    for (float& value : out) value = low + (high - low) * random.uniform();
    return out;
}

// Returns (layers, heads, d). A head's d values are in descending order, and their sum is the layer's similarity.
std::vector<float> contributions(Random& random, const std::vector<float>& similarities, std::size_t heads,
                                 std::size_t d) {
    std::vector<float> out = falling(random, similarities.size() * heads, d);
    for (std::size_t row = 0; row < similarities.size() * heads; ++row) {
        float* values = out.data() + row * d;
        const float sum = std::accumulate(values, values + d, 0.0F);
        for (std::size_t i = 0; i < d; ++i) values[i] *= similarities[row / heads] / sum;
    }
    return out;
}

trace::ModelRecord model_record(const Options& o) {
    Random random(o.seed, Stream::model);
    trace::ModelRecord m;
    m.name = "made up, no model";
    m.family = "llama";
    m.fingerprint = std::string(64, '0');
    m.dtype = "bf16";
    m.n_layers = static_cast<std::int64_t>(o.layers);
    m.n_heads = static_cast<std::int64_t>(o.heads);
    m.n_kv_heads = static_cast<std::int64_t>(o.kv_heads);
    m.head_dim = static_cast<std::int64_t>(o.head_dim);
    m.hidden_size = static_cast<std::int64_t>(o.heads * o.head_dim);
    m.vocab_size = made_up_vocabulary_size();
    m.rope_theta = 500000;
    m.config_json = "{}";
    m.spectrum_q = falling(random, o.layers, o.heads * o.head_dim);
    m.spectrum_k = falling(random, o.layers, o.heads * o.head_dim);
    m.spectrum_v = falling(random, o.layers, o.heads * o.head_dim);
    m.head_spectrum_q = falling(random, o.layers * o.heads, o.head_dim);
    m.head_spectrum_k = falling(random, o.layers * o.kv_heads, o.head_dim);
    m.head_spectrum_v = falling(random, o.layers * o.kv_heads, o.head_dim);
    return m;
}

trace::PromptRecord prompt_record(const Options& o) {
    Random random(o.seed, Stream::model, 1);
    trace::PromptRecord p;
    MadeUpText made_up = made_up_text(o.tokens, o.seed + Stream::text);
    p.name = fmt::format("made up, {} tokens", o.tokens);
    for (const std::string& piece : made_up.pieces) p.text += piece;
    p.n_tokens = p.n_context = static_cast<std::int64_t>(o.tokens);
    p.eos_ids = {0};
    p.window = window;
    p.token_ids = std::move(made_up.ids);
    p.token_text = std::move(made_up.pieces);
    p.query_similarity = matrices(random, o.layers * o.heads, window, 1, 0.1F);
    p.adjacent_similarity_q = uniform(random, o.layers, 0.5F, 0.9F);
    p.adjacent_similarity_k = uniform(random, o.layers, 0.5F, 0.9F);
    p.adjacent_similarity_v = uniform(random, o.layers, 0.1F, 0.5F);
    p.mode_contribution_q = contributions(random, p.adjacent_similarity_q, o.heads, o.head_dim);
    p.mode_contribution_k = contributions(random, p.adjacent_similarity_k, o.kv_heads, o.head_dim);
    p.mode_contribution_v = contributions(random, p.adjacent_similarity_v, o.kv_heads, o.head_dim);
    p.layer_similarity_k = matrices(random, 1, o.layers, 1, 0.3F);
    p.layer_similarity_v = matrices(random, 1, o.layers, 1, 0.1F);
    p.head_similarity_k = matrices(random, o.layers, o.kv_heads, 1, 0.3F);
    p.head_similarity_v = matrices(random, o.layers, o.kv_heads, 1, 0.1F);
    p.gradient_alignment_c11 = uniform(random, o.layers * o.heads, -0.1F, 0.1F);
    p.gradient_alignment_c12 = uniform(random, o.layers * o.heads, -0.1F, 0.1F);
    p.gradient_alignment_c22 = uniform(random, o.layers * o.heads, -0.1F, 0.1F);
    p.head_jsd = matrices(random, o.layers, o.heads, 0, std::numbers::ln2_v<float>);
    p.last_logits = uniform(random, static_cast<std::size_t>(made_up_vocabulary_size()), -10, 10);
    return p;
}

trace::RunRecord answer(const Options& o, std::size_t run) {
    Random random(o.seed, Stream::answers, run);
    trace::RunRecord r;
    const MadeUpText made_up = made_up_text(steps, o.seed + 1000 + run);
    for (const std::string& piece : made_up.pieces) r.output_text += piece;
    r.output_ids = made_up.ids;
    for (std::size_t t = 0; t < steps; ++t) {
        const float u = random.uniform();
        r.step_kl.push_back(run == 0 ? 0 : 2 * u * u * u * u);
        r.step_agreement.push_back(r.step_kl.back() < 0.4F ? 1 : 0);
    }
    r.output_error = uniform(random, o.layers * o.heads, 0, run == 0 ? 0 : 0.3F);
    r.prefill_s = 30;
    r.select_s = run == 0 ? 0 : 0.2;
    return r;
}

void set_kept(trace::RunRecord& r, const Options& o, const std::vector<std::vector<std::uint32_t>>& rows) {
    if (r.kept_offsets.empty()) r.kept_offsets.push_back(0);
    std::uint64_t layer_bytes = 0;
    for (const auto& row : rows) {
        r.kept_indices.insert(r.kept_indices.end(), row.begin(), row.end());
        r.kept_offsets.push_back(r.kept_indices.size());
        r.head_bytes.push_back(row.size() * o.head_dim * 2 * sizeof(std::uint16_t));
        layer_bytes += r.head_bytes.back();
    }
    r.cache_bytes_predicted.push_back(layer_bytes);
    r.cache_bytes.push_back((layer_bytes + 65535) / 65536 * 65536);
}

trace::RunRecord full_run(const Options& o) {
    trace::RunRecord r = answer(o, 0);
    r.policy = r.label = full_policy;
    r.parameters_json = "{}";
    r.budget = static_cast<std::int64_t>(o.tokens);
    r.budget_fraction = 1;
    r.attention_kept.assign(o.layers * o.heads, 1.0F);
    std::vector<std::uint32_t> all(o.tokens);
    std::iota(all.begin(), all.end(), 0U);
    const std::vector<std::vector<std::uint32_t>> rows(o.kv_heads, all);
    for (std::size_t layer = 0; layer < o.layers; ++layer) set_kept(r, o, rows);
    return r;
}

struct Plan {
    policies::PolicySpec spec;
    policies::RunContext context;

    /// Number of tokens at the end of the prompt that are kept without a score.
    [[nodiscard]] std::int64_t window() const { return spec.values.has("window") ? spec.values.integer("window") : 0; }
};

/// Returns the policy of a run (from 1). The budget is halved after each pass through the list of policies.
Plan plan(const Options& o, std::size_t run) {
    const std::size_t n_policies = std::size(policy_names);
    Plan out{policies::parse_policy(policy_names[(run - 1) % n_policies]), {}};
    out.context.shape = {static_cast<int>(o.layers), static_cast<int>(o.heads), static_cast<int>(o.kv_heads),
                         static_cast<int>(o.head_dim)};
    out.context.n_tokens = static_cast<std::int64_t>(o.tokens);
    out.context.budget = o.budget >> std::min<std::size_t>(62, (run - 1) / n_policies);
    return out;
}

trace::RunRecord compressed_run(const Options& o, const MadeUpModel& made_up, std::size_t run) {
    const Plan p = plan(o, run);
    std::vector<policies::LayerScores> scores(o.layers);
    for (std::size_t layer = 0; layer < o.layers; ++layer) {
        scores[layer].scores = made_up.scores(layer, run, static_cast<std::size_t>(p.window()));
    }
    const auto selections = policies::reselect(*p.spec.definition, p.spec.values, p.context, std::move(scores));

    trace::RunRecord r = answer(o, run);
    r.policy = p.spec.definition->name;
    r.label = fmt::format("{} {}", p.spec.label(), p.context.budget);
    r.parameters_json = p.spec.values.to_json();
    r.budget = p.context.budget;
    r.budget_fraction = static_cast<double>(r.budget) / static_cast<double>(o.tokens);
    r.window = p.window();
    for (const policies::Selection& layer : selections) {
        set_kept(r, o, layer.rows);
        if (o.scores) r.scores.insert(r.scores.end(), layer.scores.begin(), layer.scores.end());
    }
    return r;
}

void add_attention_kept(trace::RunRecord& r, const Options& o, std::size_t layer, const std::vector<float>& attention) {
    const std::size_t group = o.heads / o.kv_heads;
    for (std::size_t head = 0; head < o.heads; ++head) {
        const std::size_t row = layer * o.kv_heads + head / group;
        double kept = 0;
        for (std::uint64_t i = r.kept_offsets[row]; i < r.kept_offsets[row + 1]; ++i) {
            kept += attention[head * o.tokens + r.kept_indices[i]];
        }
        r.attention_kept.push_back(static_cast<float>(std::min(kept, 1.0)));
    }
}

trace::Writer open_output(const Options& o) {
    return {o.output, o.recipe(), {.force = o.force, .generator = "kvscope_make_trace (made up)"}};
}

/// Writes a trace that contains only the results of a task.
void make_results(const Options& o) {
    trace::Writer writer = open_output(o);
    writer.write_results("made-up", 0, made_up_results(o.samples, o.runs, o.seed));
    writer.finish();
}

void make_prompt_and_runs(const Options& o) {
    for (std::size_t run = 1; run <= o.runs; ++run) {  // reports invalid runs before anything is written
        const Plan p = plan(o, run);
        p.spec.create()->begin(p.context);
    }
    trace::Writer writer = open_output(o);
    writer.write_model(model_record(o));
    const MadeUpModel made_up(o);
    std::vector<trace::RunRecord> runs;
    for (std::size_t run = 1; run <= o.runs; ++run) {
        runs.push_back(compressed_run(o, made_up, run));
        fmt::print(stderr, "made {}\n", runs.back().label);
    }
    {
        trace::PromptRecord prompt = prompt_record(o);
        for (std::size_t layer = 0; layer < o.layers; ++layer) {
            const std::vector<float> attention = made_up.attention(layer);
            for (trace::RunRecord& run : runs) add_attention_kept(run, o, layer, attention);
            if (!o.attention) continue;
            prompt.window_attention.insert(prompt.window_attention.end(), attention.begin(), attention.end());
        }
        fmt::print(stderr, "attention is complete; writing the trace\n");
        writer.write_prompt(0, prompt);
    }
    writer.write_run(0, 0, full_run(o));
    for (std::size_t run = 0; run < runs.size(); ++run) {
        writer.write_run(0, static_cast<int>(run) + 1, runs[run]);
        runs[run] = {};
    }
    writer.finish();
}

void make(const Options& o) {
    o.samples > 0 ? make_results(o) : make_prompt_and_runs(o);
    fmt::print("{}: {:.1f} MB\n", o.output.string(), static_cast<double>(std::filesystem::file_size(o.output)) / 1e6);
}

int run(int argc, char** argv) {
    Options o;
    CLI::App app(
        "Writes a trace with a made-up prompt in several scripts, the run `full` and runs of the program's policies "
        "with "
        "made-up scores, in the dimensions of a large model.",
        "kvscope_make_trace");
    app.footer(
        "Equal options and seeds give equal contents. With default sizes:\n"
        "  kvscope_make_trace -o t.h5                                  9 MB\n"
        "  kvscope_make_trace --scores --attention --runs 5 -o t.h5    1.04 GB; takes 1.5 GB of memory\n"
        "  kvscope_make_trace --samples 10000 --runs 48 -o t.h5        490,000 rows of results");
    const auto positive = CLI::Range(std::size_t{1}, std::size_t{1} << 24);
    app.add_option("--tokens", o.tokens, "Number of prompt tokens (N)")
        ->check(CLI::Range(64, 1 << 24))
        ->capture_default_str();
    app.add_option("--layers", o.layers, "Number of layers (L)")->check(positive)->capture_default_str();
    app.add_option("--heads", o.heads, "Number of query heads (H), a multiple of the KV heads")
        ->check(positive)
        ->capture_default_str();
    app.add_option("--kv-heads", o.kv_heads, "Number of KV heads (G)")->check(positive)->capture_default_str();
    app.add_option("--head-dim", o.head_dim, "Head size (d)")->check(positive)->capture_default_str();
    app.add_option("--runs", o.runs, "Number of runs in addition to the full run")->capture_default_str();
    app.add_option("--budget", o.budget, "Number of entries per KV head, halved after every fifth run")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--scores", o.scores, "Store each run's scores (L, G, N)");
    app.add_flag("--attention", o.attention, "Store the window attention (L, H, N)");
    app.add_option("--samples", o.samples, "Write only the results of a task with this number of samples")
        ->check(CLI::Range(0, 1 << 24))
        ->capture_default_str();
    app.add_option("--seed", o.seed, "Seed of all random numbers")->capture_default_str();
    app.add_option("-o,--output", o.output, "Path of the trace to write")->required();
    app.add_flag("--force", o.force, "Replace an existing file");
    try {
        app.parse(argc, argv);
        if (o.heads % o.kv_heads != 0) {
            throw std::invalid_argument(
                fmt::format("--heads must be a multiple of the {} KV heads, not {}", o.kv_heads, o.heads));
        }
        make(o);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "kvscope_make_trace: {}\n", error.what());
        return 2;
    }
    return 0;
}

}  // namespace

}  // namespace kvscope::bench

int main(int argc, char** argv) {
    try {
        return kvscope::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kvscope_make_trace: %s\n", error.what());
        return 1;
    }
}
