#include "engine/echo_training.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "engine/prefill.h"
#include "kernels/linear.h"

namespace kvscope::engine {
namespace {

using policies::EchoLayout;
using policies::EchoMaps;
using MatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Keys or values of a layer's tokens, number by number: (D, tokens) f32.
std::vector<float> numbers_of(const policies::EntriesView& view, const EchoLayout& layout, int64_t first, int64_t end) {
    const auto n = static_cast<size_t>(end - first);
    std::vector<float> numbers(static_cast<size_t>(layout.width()) * n);
    std::vector<float> vector(static_cast<size_t>(layout.head_dim));
    for (int head = 0; head < layout.n_kv_heads; ++head)
        for (int64_t token = first; token < end; ++token) {
            policies::read_entry(view, head, token, layout.head_dim, vector.data());
            for (int c = 0; c < layout.head_dim; ++c)
                numbers[static_cast<size_t>(head * layout.head_dim + c) * n + static_cast<size_t>(token - first)] =
                    vector[static_cast<size_t>(c)];
        }
    return numbers;
}

/// Sums over tokens of the products of any two of a group's first layer's D numbers and a layer's own D.
class Moments {
 public:
    explicit Moments(const EchoLayout& layout)
        : inputs_(layout.width() + layout.local), sums_(MatrixD::Zero(2 * layout.width(), 2 * layout.width())) {}

    /// @param first, own (D, tokens). The same whatever the number of threads: each product is one of a few rows.
    void add(const std::vector<float>& first, const std::vector<float>& own) {
        std::vector<float> both = first;
        both.insert(both.end(), own.begin(), own.end());
        const int64_t n = sums_.rows(), tokens = static_cast<int64_t>(both.size()) / n;
        std::vector<float> products(static_cast<size_t>(n * n));
        kernels::linear({.dtype = kernels::DType::f32,
                         .n_rows = n,
                         .in = tokens,
                         .out = n,
                         .x = both.data(),
                         .weight = both.data(),
                         .y = products.data()});
        sums_ += Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
                     products.data(), n, n)
                     .cast<double>();
    }

    /// (inputs, D - D_local)
    policies::Matrix solved(double ridge) const {
        MatrixD squares = sums_.topLeftCorner(inputs_, inputs_);
        const double mean = squares.trace() / static_cast<double>(inputs_);
        squares.diagonal().array() += mean > 0 ? ridge * mean : 1.0;
        const MatrixD map = squares.llt().solve(sums_.topRightCorner(inputs_, outputs()));
        policies::Matrix matrix{static_cast<int>(inputs_), static_cast<int>(outputs()), {}};
        matrix.numbers.resize(static_cast<size_t>(map.size()));
        std::transform(map.data(), map.data() + map.size(), matrix.numbers.begin(),
                       [](double value) { return static_cast<float>(value); });
        return matrix;
    }

    double error(const policies::Matrix& map) const {
        const MatrixD w = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
                              map.numbers.data(), map.n_rows, map.n_columns)
                              .cast<double>();
        const double whole = sums_.bottomRightCorner(outputs(), outputs()).trace();
        const MatrixD squares = sums_.topLeftCorner(inputs_, inputs_),
                      products = sums_.topRightCorner(inputs_, outputs());
        const double missed = whole - 2.0 * w.cwiseProduct(products).sum() + w.cwiseProduct(squares * w).sum();
        return whole > 0 ? std::sqrt(std::max(missed, 0.0) / whole) : 0.0;
    }

 private:
    Eigen::Index outputs() const { return sums_.rows() - inputs_; }

    Eigen::Index inputs_;
    MatrixD sums_;
};

struct LayerMoments {
    Moments keys, values;
};

/// A text that is read sequence by sequence.
class Reading {
 public:
    Reading(const Model& model, const EchoLayout& layout, std::span<const int32_t> ids,
            const EchoTrainingOptions& options, Progress& progress)
        : model_(model), layout_(layout), ids_(ids), options_(options), progress_(progress) {
        if (options.sequence < 1 || options.skipped < 0 || options.sequence <= options.skipped)
            throw UsageError(
                fmt::format("sequences of {} tokens of which the first {} do not count: expected longer ones",
                            options.sequence, options.skipped));
        for (int layer = 0; layer < layout.n_layers; ++layer)
            if (layout.is_rebuilt(layer)) moments_.emplace(layer, LayerMoments{Moments(layout), Moments(layout)});
    }

    int64_t n_counted() const {
        const int64_t n = static_cast<int64_t>(ids_.size()), whole = n / options_.sequence,
                      rest = n % options_.sequence;
        return whole * (options_.sequence - options_.skipped) + std::max<int64_t>(rest - options_.skipped, 0);
    }

    const std::map<int, LayerMoments>& read(std::string_view phase) {
        const auto sequence = static_cast<size_t>(options_.sequence);
        const auto total = static_cast<int64_t>((ids_.size() + sequence - 1) / sequence);
        progress_.begin(phase, total);
        int64_t done = 0;
        for (size_t begin = 0; begin < ids_.size(); begin += sequence) {
            read_sequence(ids_.subspan(begin, std::min(sequence, ids_.size() - begin)));
            progress_.advance(++done);
        }
        return moments_;
    }

 private:
    /// Its own steps are none of the caller's.
    class Inner final : public Progress {
     public:
        explicit Inner(const Progress& outer) : outer_(outer) {}
        void begin(std::string_view, int64_t) override {}
        void advance(int64_t) override {}
        void message(std::string_view) override {}
        bool cancelled() const override { return outer_.cancelled(); }

     private:
        const Progress& outer_;
    };

    void read_sequence(std::span<const int32_t> ids) {
        const auto n = static_cast<int64_t>(ids.size());
        if (n <= options_.skipped) return;
        PrefillRequest request;
        request.ids = ids;
        request.keep_cache = false;
        request.needs.keys_before_rope = true;
        std::vector<float> first_keys, first_values;
        Inner inner(progress_);
        prefill(
            model_.transformer(), request,
            [&](PrefillLayer& layer) {
                const bool is_first = layout_.is_first(layer.layer);
                if (!is_first && !layout_.is_rebuilt(layer.layer)) return;
                auto keys = numbers_of(layer.prompt.keys_before_rope, layout_, options_.skipped, n);
                auto values = numbers_of(layer.prompt.values, layout_, options_.skipped, n);
                if (is_first) {
                    first_keys = std::move(keys);
                    first_values = std::move(values);
                    return;
                }
                auto& moments = moments_.at(layer.layer);
                moments.keys.add(first_keys, keys);
                moments.values.add(first_values, values);
            },
            inner);
    }

    const Model& model_;
    const EchoLayout& layout_;
    std::span<const int32_t> ids_;
    const EchoTrainingOptions& options_;
    Progress& progress_;
    std::map<int, LayerMoments> moments_;
};

std::map<int, EchoError> errors_of(const std::map<int, LayerMoments>& moments, const EchoMaps& maps) {
    std::map<int, EchoError> errors;
    for (const auto& [layer, of_layer] : moments) {
        const auto& map = maps.layers.at(layer);
        errors[layer] = {of_layer.keys.error(map.keys), of_layer.values.error(map.values)};
    }
    return errors;
}

}  // namespace

EchoTraining train_echo(const Model& model, std::span<const int32_t> ids, const EchoTrainingOptions& options,
                        Progress& progress) {
    EchoTraining training;
    EchoMaps& maps = training.maps;
    maps.layout = policies::echo_layout(options.ratio, model.transformer().shape());
    maps.model_fingerprint = model.fingerprint();
    if (!(options.ridge >= 0)) throw UsageError(fmt::format("a ridge of {}: expected 0 or more", options.ridge));
    Reading reading(model, maps.layout, ids, options, progress);
    training.n_tokens = reading.n_counted();
    const int inputs = maps.layout.width() + maps.layout.local;
    if (training.n_tokens < inputs)
        throw UsageError(
            fmt::format("the text has {} tokens that count, and each map has {} inputs: give a longer text",
                        training.n_tokens, inputs));
    const auto& moments = reading.read("reading the text");
    progress.begin("solving", static_cast<int64_t>(moments.size()));
    int64_t done = 0;
    for (const auto& [layer, of_layer] : moments) {
        if (progress.cancelled()) throw Cancelled();
        maps.layers[layer] = {of_layer.keys.solved(options.ridge), of_layer.values.solved(options.ridge)};
        progress.advance(++done);
    }
    maps.facts["stage1"] = "least-squares";
    maps.facts["ridge"] = fmt::format("{:g}", options.ridge);
    maps.facts["tokens"] = std::to_string(training.n_tokens);
    maps.facts["sequence"] = std::to_string(options.sequence);
    maps.facts["model"] = model.attributes().name;
    training.errors = errors_of(moments, maps);
    return training;
}

std::map<int, EchoError> echo_errors(const Model& model, const EchoMaps& maps, std::span<const int32_t> ids,
                                     const EchoTrainingOptions& options, Progress& progress) {
    Reading reading(model, maps.layout, ids, options, progress);
    if (reading.n_counted() < 1) throw UsageError("the text is too short: no token of it counts");
    return errors_of(reading.read("reading another text"), maps);
}

}  // namespace kvscope::engine
