#include "engine/decode/pseudo_query_similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/cache/run_cache.h"
#include "engine/common/engine_error.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"
#include "engine/device/tensor_functions.h"
#include "engine/prefill/prefill.h"
#include "policies/methods/seeded_random.h"

namespace kvscope::engine {
namespace {

constexpr size_t tails_together = 64;

at::Tensor by_head(const at::Tensor& queries, const policies::ModelShape& shape) {
    return queries.cpu().to(at::kFloat).reshape({queries.size(0), shape.n_heads, shape.head_dim}).contiguous();
}

double sum_of_cosines(const at::Tensor& a, const at::Tensor& b) {
    const int64_t d = a.size(2);
    double sum = 0;
    for (int64_t i = 0; i < a.size(0) * a.size(1); ++i) {
        const float* x = a.const_data_ptr<float>() + i * d;
        const float* y = b.const_data_ptr<float>() + i * d;
        double xx = 0, yy = 0, xy = 0;
        for (int64_t c = 0; c < d; ++c) {
            xx += double{x[c]} * double{x[c]};
            yy += double{y[c]} * double{y[c]};
            xy += double{x[c]} * double{y[c]};
        }
        if (xx > 0 && yy > 0) sum += xy / std::sqrt(xx * yy);
    }
    return sum;
}

}  // namespace

PseudoQuerySimilarity::PseudoQuerySimilarity(const Transformer& model, std::span<const int32_t> prompt,
                                             std::span<const int32_t> end_ids, int64_t n_answer, Progress& progress)
    : model_(model), n_prompt_(static_cast<int64_t>(prompt.size())) {
    const int64_t limit = model.config().context_length;
    if (n_answer < 1) throw UsageError("the answer must have at least 1 token");
    if (n_answer > limit - n_prompt_)
        throw UsageError(
            fmt::format("the prompt has {} tokens and up to {} more are needed, but the model's context is "
                        "{}: shorten the prompt or ask for fewer tokens",
                        n_prompt_, n_answer, limit));
    PrefillRequest request;
    request.ids = prompt;
    request.room = n_answer;
    auto read = prefill(model, request, nullptr, progress);
    cache_ = std::move(read.cache);

    RunCache full(model, policies::Granularity::kv_head, policies::Positions::prompt, false);
    for (size_t layer = 0; layer < cache_.size(); ++layer)
        full.adopt(static_cast<int>(layer), cache_[layer], n_prompt_);
    Sequence sequence{&full, n_prompt_};
    std::vector<AttentionReference> steps;
    progress.begin("decode", n_answer, "tokens");
    std::vector<float> logits = std::move(read.last_logits);
    while (static_cast<int64_t>(answer_.size()) < n_answer) {
        progress.throw_if_stopped();
        const int32_t id = greedy_token(logits);
        if (std::find(end_ids.begin(), end_ids.end(), id) != end_ids.end()) break;
        answer_.push_back(id);
        const std::span<const int32_t> token(&answer_.back(), 1);
        const at::Tensor next =
            model.logits(feed_tokens(model, {&sequence, 1}, {&token, 1},
                                     {.records = {&steps.emplace_back(), 1}, .record_plain = true, .errors = {}}));
        logits.assign(next.const_data_ptr<float>(), next.const_data_ptr<float>() + next.numel());
        progress.advance(static_cast<int64_t>(answer_.size()));
    }
    if (answer_.empty())
        throw RunError(
            "the model's answer to this prompt is empty, so there are no queries to compare with: use another prompt");
    for (size_t layer = 0; layer < cache_.size(); ++layer) {
        std::vector<at::Tensor> plain, rotated;
        for (const AttentionReference& step : steps) {
            plain.push_back(step.plain_queries[layer]);
            rotated.push_back(step.queries[layer]);
        }
        queries_.push_back({by_head(at::cat(plain), model.shape()), by_head(at::cat(rotated), model.shape())});
    }
}

std::vector<QuerySimilarity> PseudoQuerySimilarity::similarity(std::span<const Tail> tails, Progress& progress) {
    for (const Tail& tail : tails) {
        if (tail.ids.size() != answer_.size() || tail.positions.size() != answer_.size())
            throw UsageError(
                fmt::format("{} pseudo tokens at {} positions cannot be compared with an answer of {} tokens",
                            tail.ids.size(), tail.positions.size(), answer_.size()));
        if (*std::min_element(tail.positions.begin(), tail.positions.end()) < 0)
            throw UsageError("a pseudo token cannot have a negative position");
    }
    const auto shape = model_.shape();
    std::vector<QuerySimilarity> similarities(tails.size());
    progress.begin("queries", static_cast<int64_t>(tails.size()) * shape.n_layers, "layers × pseudo queries");
    int64_t done = 0;
    for (size_t first = 0; first < tails.size(); first += tails_together) {
        const auto batch = tails.subspan(first, std::min(tails_together, tails.size() - first));
        PseudoTokenPass pass(model_, batch);
        for (int layer = 0; layer < shape.n_layers; ++layer) {
            const Queries& expected = queries_[static_cast<size_t>(layer)];
            for (size_t i = 0; i < batch.size(); ++i) {
                progress.throw_if_stopped();
                const auto [plain, qkv] = pass.run_layer(layer, i, cache_[static_cast<size_t>(layer)], n_prompt_);
                auto& similarity = similarities[first + i];
                similarity.before_rope += sum_of_cosines(by_head(plain, shape), expected.plain);
                similarity.after_rope +=
                    sum_of_cosines(by_head(qkv.narrow(1, 0, plain.size(1)), shape), expected.rotated);
                progress.advance(++done);
            }
        }
    }
    const double n = static_cast<double>(shape.n_layers) * static_cast<double>(queries_[0].plain.size(0)) *
                     static_cast<double>(shape.n_heads);
    for (QuerySimilarity& similarity : similarities) {
        similarity.after_rope /= n;
        similarity.before_rope /= n;
    }
    return similarities;
}

std::vector<Tail> draw_pseudo_tokens(const PseudoTokens& tokens, const PseudoSource& source, int n) {
    using Content = PseudoTokens::Content;
    if (tokens.content == Content::phrase && source.phrase.empty())
        throw UsageError("the phrase that pseudo tokens repeat is empty: give some text");
    policies::SeededRandom random(source.seed);
    const auto length = static_cast<int64_t>(source.answer.size());
    std::vector<Tail> tails(static_cast<size_t>(n));
    for (Tail& tail : tails) {
        const int64_t start =
            tokens.drawn_below > 0 ? random.below(std::max<int64_t>(tokens.drawn_below - length, 0) + 1) : tokens.start;
        for (int64_t i = 0; i < length; ++i) {
            const auto place = static_cast<size_t>(i);
            tail.ids.push_back(tokens.content == Content::answer ? source.answer[place]
                               : tokens.content == Content::phrase
                                   ? source.phrase[place % source.phrase.size()]
                                   : static_cast<int32_t>(random.below(source.n_vocabulary)));
            tail.positions.push_back(start + i);
        }
    }
    return tails;
}

}  // namespace kvscope::engine
