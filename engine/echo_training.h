#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "policies/interface/echo_maps.h"

namespace kvscope::engine {

/// What a map predicts from (the paper's Table 4).
enum class EchoInputs { both, first_layer, own };

struct EchoTrainingOptions {
    double ratio = 0.5;       ///< of the cache's bytes; the layout nearest to it is taken
    int64_t sequence = 1024;  ///< tokens that are read at a time, each sequence as a prompt of its own
    int64_t skipped = 4;      ///< first tokens of each sequence that do not count: EchoKV keeps those exact
    double ridge = 1e-4;      ///< times the inputs' mean square, added to each input's own
    EchoInputs inputs = EchoInputs::both;  ///< rows of the others are 0
    /// The file in which what was read so far is kept from time to time and when the work is stopped, so that the same
    /// call goes on behind it, to the same maps. Empty: nothing is kept.
    std::filesystem::path state{};
};

/// Of a layer, over the training text: 2-norm of what the maps miss over that of what they are to give.
struct EchoError {
    double keys = 0, values = 0;
};

struct EchoTraining {
    policies::EchoMaps maps;
    std::map<int, EchoError> errors;  ///< of every layer that is rebuilt
    int64_t n_tokens = 0;             ///< that count
};

/// The layout nearest to the ratio and whom the maps are for, without maps.
/// @throws policies::EchoMapsError for a ratio that cannot be had; UsageError for one that leaves everything
policies::EchoMaps empty_echo_maps(const Model& model, double ratio);

/// EchoKV's maps for a model: of each layer that is rebuilt, what the mean squared error of the rebuilt keys (before
/// RoPE) and values is least with, over the tokens of the text. It is what gradient descent on that error (the paper's
/// first stage) goes towards, found at once from sums of products: argmin |X W - Y|^2 + ridge mean(diag X'X) |W|^2.
/// @param ids the text's tokens
/// @throws policies::EchoMapsError for a ratio that cannot be had; UsageError for one that leaves everything, for own
/// inputs where a layer stores none of its own, for a
/// text of fewer tokens than a map has
///         inputs, for options below 1 (or 0, where that means nothing); Cancelled
EchoTraining train_echo(const Model& model, std::span<const int32_t> ids, const EchoTrainingOptions& options,
                        Progress& progress);

/// How far the maps are from the keys and values of another text, read in the same way.
/// @throws UsageError for a text in which no token counts; Cancelled
std::map<int, EchoError> echo_errors(const Model& model, const policies::EchoMaps& maps, std::span<const int32_t> ids,
                                     const EchoTrainingOptions& options, Progress& progress);

}  // namespace kvscope::engine
