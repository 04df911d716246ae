#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::engine {

/// Inputs of a map (EchoKV, Table 4).
enum class EchoInputs { both, first_layer, own };

struct EchoTrainingOptions {
    double ratio = 0.5;       ///< share of the cache's bytes; the nearest possible layout is used
    int64_t sequence = 1024;  ///< tokens of a sequence; each sequence is read as a separate prompt
    int64_t skipped = 4;      ///< tokens ignored at the start of each sequence, because EchoKV keeps them exact
    double ridge = 1e-4;      ///< regularization as a share of the mean square of the inputs
    EchoInputs inputs = EchoInputs::both;  ///< rows of unused inputs are 0
    /// File of intermediate sums, from which a repeated call resumes; empty for none.
    std::filesystem::path state{};
};

/// Errors of a layer's maps on a text: |X W - Y| / |Y|.
struct EchoError {
    double keys = 0, values = 0;
};

struct EchoTraining {
    policies::EchoMaps maps;
    std::map<int, EchoError> errors;  ///< for each rebuilt layer
    int64_t n_tokens = 0;
};

/// Returns the layout nearest to the ratio, without maps.
/// @throws policies::EchoMapsError for an impossible ratio; UsageError if the layout rebuilds nothing
[[nodiscard]] policies::EchoMaps make_echo_map_layout(const Model& model, double ratio);

/// Returns the maps with the smallest mean squared error of keys (before RoPE) and values over the text, as in EchoKV's
/// first stage. A map W minimizes |X W - Y|^2 + ridge mean(diag X'X) |W|^2.
/// @throws policies::EchoMapsError for an impossible ratio; UsageError for a short text or options out of range
[[nodiscard]] EchoTraining train_echo_maps(const Model& model, std::span<const int32_t> ids,
                                           const EchoTrainingOptions& options, Progress& progress);

/// Returns the maps' errors on another text. @throws UsageError if the text is too short
[[nodiscard]] std::map<int, EchoError> measure_echokv_map_errors(const Model& model, const policies::EchoMaps& maps,
                                                                 std::span<const int32_t> ids,
                                                                 const EchoTrainingOptions& options,
                                                                 Progress& progress);

}  // namespace kvscope::engine
