#include "engine/echo/echo_training.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "engine/common/engine_error.h"
#include "engine/echo/resumable_state.h"
#include "engine/model/product.h"
#include "engine/prefill/prefill.h"

namespace kvscope::engine {
namespace {

using policies::EchoLayout;
using policies::EchoMaps;

using RowsF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Gram matrix of the D numbers of a group's first layer and the D numbers of a layer, summed over tokens.
class Moments {
 public:
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

    explicit Moments(const policies::EchoLayout& layout);

    void add(const std::vector<float>& first, const std::vector<float>& own);

    struct Inputs {
        Eigen::Index begin = 0, end = 0;
    };

    /// Returns the map W that minimizes |X W - Y|^2 + ridge mean(diag X'X) |W|^2. X holds all D numbers of the first
    /// layer and the first D_local numbers of the layer. Y holds the layer's other numbers. May raise the ridge.
    /// @throws RunError if the sums are not finite
    [[nodiscard]] policies::Matrix solved(double ridge, Inputs given) const;

    /// Returns |X W - Y| / |Y|; 0 if Y is 0.
    [[nodiscard]] double error(const policies::Matrix& map) const;

    [[nodiscard]] std::span<double> sums() { return {sums_.data(), static_cast<size_t>(sums_.size())}; }

 private:
    [[nodiscard]] Eigen::Index outputs() const { return sums_.rows() - inputs_; }

    Eigen::Index inputs_;
    Matrix sums_;
};

struct LayerMoments {
    Moments keys, values;
};
using EchoMoments = std::map<int, LayerMoments>;

Moments::Moments(const policies::EchoLayout& layout)
    : inputs_(layout.width() + layout.local), sums_(Matrix::Zero(2 * layout.width(), 2 * layout.width())) {}

void Moments::add(const std::vector<float>& first, const std::vector<float>& own) {
    std::vector<float> both = first;
    both.insert(both.end(), own.begin(), own.end());
    const std::vector<float> products = gram_matrix(both, static_cast<size_t>(sums_.rows()));
    sums_ += Eigen::Map<const RowsF>(products.data(), sums_.rows(), sums_.rows()).cast<double>();
}

policies::Matrix Moments::solved(double ridge, Inputs given) const {
    const Eigen::Index n = given.end - given.begin;
    const Matrix squares = sums_.block(given.begin, given.begin, n, n);
    const double mean = squares.trace() / static_cast<double>(n);
    // With nearly dependent inputs, rounding errors can outweigh a small ridge.
    for (double share = std::max(ridge, 1e-7); share < 1e3; share *= 10) {
        Matrix raised = squares;
        raised.diagonal().array() += mean > 0 ? share * mean : 1.0;
        const Eigen::LLT<Matrix> factors(raised);
        if (factors.info() != Eigen::Success) continue;
        Matrix map = Matrix::Zero(inputs_, outputs());
        map.middleRows(given.begin, n) = factors.solve(sums_.block(given.begin, inputs_, n, outputs()));
        policies::Matrix matrix{static_cast<int>(inputs_), static_cast<int>(outputs()), {}};
        matrix.numbers.resize(static_cast<size_t>(map.size()));
        std::transform(map.data(), map.data() + map.size(), matrix.numbers.begin(),
                       [](double value) { return static_cast<float>(value); });
        if (map.allFinite() && !(error(matrix) > 1.0)) return matrix;
    }
    throw RunError(
        "no map can be computed from the text's keys and values: they are not finite or do not determine a map");
}

double Moments::error(const policies::Matrix& map) const {
    const Matrix w = Eigen::Map<const RowsF>(map.numbers.data(), map.n_rows, map.n_columns).cast<double>();
    const double whole = sums_.bottomRightCorner(outputs(), outputs()).trace();
    const Matrix squares = sums_.topLeftCorner(inputs_, inputs_), products = sums_.topRightCorner(inputs_, outputs());
    const double missed = whole - 2.0 * w.cwiseProduct(products).sum() + w.cwiseProduct(squares * w).sum();
    return whole > 0 ? std::sqrt(std::max(missed, 0.0) / whole) : 0.0;
}

ResumableState::Parts moments_as_bytes(EchoMoments& moments) {
    ResumableState::Parts parts;
    for (auto& [layer, of_layer] : moments) {
        parts.push_back(std::as_writable_bytes(of_layer.keys.sums()));
        parts.push_back(std::as_writable_bytes(of_layer.values.sums()));
    }
    return parts;
}

class Reading {
 public:
    Reading(const Model& model, const EchoLayout& layout, std::span<const int32_t> ids,
            const EchoTrainingOptions& options, Progress& progress)
        : model_(model),
          layout_(layout),
          ids_(ids),
          options_(options),
          progress_(progress),
          state_(options.state, "kvscope echo moments 2\n", what_is_read()) {
        if (options.sequence < 1 || options.skipped < 0 || options.sequence <= options.skipped)
            throw UsageError(
                fmt::format("sequences have {} tokens, of which the first {} are ignored: choose longer sequences",
                            options.sequence, options.skipped));
        for (int layer = 0; layer < layout.n_layers; ++layer)
            if (layout.is_rebuilt(layer)) moments_.emplace(layer, LayerMoments{Moments(layout), Moments(layout)});
    }

    int64_t n_counted() const {
        const int64_t n = static_cast<int64_t>(ids_.size()), whole = n / options_.sequence,
                      rest = n % options_.sequence;
        return whole * (options_.sequence - options_.skipped) + std::max<int64_t>(rest - options_.skipped, 0);
    }

    const EchoMoments& read(std::string_view phase) {
        const auto sequence = static_cast<size_t>(options_.sequence);
        const auto total = static_cast<int64_t>((ids_.size() + sequence - 1) / sequence);
        const auto parts = moments_as_bytes(moments_);
        const int64_t before = state_.resume(parts, total, "sequences", progress_);
        progress_.begin(phase, total - before, "sequences");
        for (int64_t done = before; done < total; ++done) {
            const auto begin = static_cast<size_t>(done) * sequence;
            try {
                read_sequence(ids_.subspan(begin, std::min(sequence, ids_.size() - begin)));
            } catch (const Stopped&) {
                if (done > before) state_.keep(parts, done, progress_);
                throw;
            }
            progress_.advance(done + 1 - before);
            state_.keep_each_minute(parts, done + 1, progress_);
        }
        if (before < total) state_.keep(parts, total, progress_);
        return moments_;
    }

 private:
    std::string what_is_read() const {
        return fmt::format("{} {} groups of {} {} local, sequences of {} from {} on, {:016x}", model_.fingerprint(),
                           kernels::name_of(model_.transformer().dtype()), layout_.group, layout_.local,
                           options_.sequence, options_.skipped, XXH3_64bits(ids_.data(), ids_.size_bytes()));
    }

    /// Adds a whole sequence, or nothing if cancelled, so that a resumed call adds no numbers twice.
    void read_sequence(std::span<const int32_t> ids) {
        const auto n = static_cast<int64_t>(ids.size());
        if (n <= options_.skipped) return;
        struct Numbers {
            std::vector<float> keys, values;
        };
        std::vector<Numbers> layers(static_cast<size_t>(layout_.n_layers));
        const auto numbers_of = [&](const policies::EntriesView& view) {
            return numbers_by_channel(view, layout_.n_kv_heads, layout_.head_dim, options_.skipped, n);
        };
        read_layers(model_.transformer(), ids, 0, progress_, [&](PrefillLayer& layer) {
            layers[static_cast<size_t>(layer.layer)] = {numbers_of(layer.prompt.keys_before_rope),
                                                        numbers_of(layer.prompt.values)};
        });
        for (auto& [layer, moments] : moments_) {
            const auto& first = layers[static_cast<size_t>(layer - layer % layout_.group)];
            const auto& own = layers[static_cast<size_t>(layer)];
            moments.keys.add(first.keys, own.keys);
            moments.values.add(first.values, own.values);
        }
    }

    const Model& model_;
    const EchoLayout& layout_;
    std::span<const int32_t> ids_;
    const EchoTrainingOptions& options_;
    Progress& progress_;
    EchoMoments moments_;
    ResumableState state_;
};

std::map<int, EchoError> errors_of(const EchoMoments& moments, const EchoMaps& maps) {
    std::map<int, EchoError> errors;
    for (const auto& [layer, of_layer] : moments) {
        const auto& map = maps.layers.at(layer);
        errors[layer] = {of_layer.keys.error(map.keys), of_layer.values.error(map.values)};
    }
    return errors;
}

Moments::Inputs given_inputs(const EchoLayout& layout, EchoInputs inputs) {
    const int all = layout.width() + layout.local;
    if (inputs == EchoInputs::both) return {0, all};
    if (inputs == EchoInputs::first_layer) return {0, layout.width()};
    if (layout.local == 0)
        throw UsageError(
            "maps from a layer's own numbers are impossible at this ratio, because layers store no numbers of their "
            "own: "
            "use a ratio such as 0.75, at which layers store half of their numbers");
    return {layout.width(), all};
}

}  // namespace

policies::EchoMaps make_echo_map_layout(const Model& model, double ratio) {
    EchoMaps maps;
    maps.layout = policies::echo_layout_for_ratio(ratio, model.transformer().shape());
    maps.model_fingerprint = model.fingerprint();
    if (maps.layout.ratio() == 1.0)
        throw UsageError(
            fmt::format("for the ratio {}, the nearest layout stores everything and rebuilds nothing: "
                        "use a smaller ratio",
                        ratio));
    maps.facts["model"] = model.attributes().name;
    return maps;
}

EchoTraining train_echo_maps(const Model& model, std::span<const int32_t> ids, const EchoTrainingOptions& options,
                             Progress& progress) {
    EchoTraining training;
    EchoMaps& maps = training.maps = make_echo_map_layout(model, options.ratio);
    if (!(options.ridge >= 0)) throw UsageError(fmt::format("the ridge is {}: expected 0 or more", options.ridge));
    Reading reading(model, maps.layout, ids, options, progress);
    training.n_tokens = reading.n_counted();
    const int inputs = maps.layout.width() + maps.layout.local;
    const Moments::Inputs given = given_inputs(maps.layout, options.inputs);
    if (training.n_tokens < inputs)
        throw UsageError(fmt::format(
            "the text has {} usable tokens, but each map has {} inputs: read more of the text, or use a longer text",
            training.n_tokens, inputs));
    const auto& moments = reading.read("reading the text");
    progress.begin("solving", static_cast<int64_t>(moments.size()), "layers");
    int64_t done = 0;
    for (const auto& [layer, of_layer] : moments) {
        progress.throw_if_stopped();
        maps.layers[layer] = {of_layer.keys.solved(options.ridge, given), of_layer.values.solved(options.ridge, given)};
        progress.advance(++done);
    }
    maps.facts["stage1"] = "least-squares";
    if (options.inputs != EchoInputs::both)
        maps.facts["inputs"] = options.inputs == EchoInputs::own ? "own" : "first layer";
    maps.facts["ridge"] = fmt::format("{:g}", options.ridge);
    maps.facts["tokens"] = std::to_string(training.n_tokens);
    maps.facts["sequence"] = std::to_string(options.sequence);
    training.errors = errors_of(moments, maps);
    return training;
}

std::map<int, EchoError> measure_echokv_map_errors(const Model& model, const EchoMaps& maps,
                                                   std::span<const int32_t> ids, const EchoTrainingOptions& options,
                                                   Progress& progress) {
    EchoTrainingOptions anew = options;
    anew.state.clear();
    Reading reading(model, maps.layout, ids, anew, progress);
    if (reading.n_counted() < 1) throw UsageError("the text is too short: it has no usable tokens");
    return errors_of(reading.read("reading another text"), maps);
}

}  // namespace kvscope::engine
