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

/// Inputs of a map (Table 4 of the paper).
enum class EchoInputs { both, first_layer, own };

/// Options for training EchoKV's maps by least squares.
struct EchoTrainingOptions {
    double ratio = 0.5;       ///< share of the cache's bytes; the nearest possible layout is used
    int64_t sequence = 1024;  ///< tokens of a sequence; each is read as a separate prompt
    int64_t skipped = 4;      ///< first tokens of each sequence that are ignored, because EchoKV keeps them exact
    double ridge = 1e-4;      ///< factor of the inputs' mean square that is added to each input's own square
    EchoInputs inputs = EchoInputs::both;  ///< rows of unused inputs are 0
    /// File of intermediate sums, from which a repeated call continues. Not written if the path is empty.
    std::filesystem::path state{};
};

/// Errors of a layer's maps on a text: 2-norm of the difference, divided by the 2-norm of the true numbers.
struct EchoError {
    double keys = 0, values = 0;
};

struct EchoTraining {
    policies::EchoMaps maps;
    std::map<int, EchoError> errors;  ///< errors of each rebuilt layer
    int64_t n_tokens = 0;             ///< number of tokens used
};

/// Returns the layout nearest to the ratio, without maps.
/// @throws policies::EchoMapsError if the ratio is impossible; UsageError if nothing would be compressed
policies::EchoMaps empty_echo_maps(const Model& model, double ratio);

/// Returns the maps with the smallest mean squared error of keys (before RoPE) and values over the text, the minimum of
/// the paper's first stage: argmin |X W - Y|^2 + ridge mean(diag X'X) |W|^2.
/// @param ids tokens of the text
/// @throws policies::EchoMapsError if the ratio is impossible; UsageError for a short text or options out of range
EchoTraining train_echo(const Model& model, std::span<const int32_t> ids, const EchoTrainingOptions& options,
                        Progress& progress);

/// Returns the errors of the maps on another text. @throws UsageError if the text is too short
std::map<int, EchoError> echo_errors(const Model& model, const policies::EchoMaps& maps, std::span<const int32_t> ids,
                                     const EchoTrainingOptions& options, Progress& progress);

}  // namespace kvscope::engine
