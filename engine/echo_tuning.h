#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/progress.h"
#include "policies/interface/echo_maps.h"

namespace kvscope::engine {

struct EchoTuningOptions {
    int64_t steps = 1000;
    int64_t sequence = 512;  ///< tokens of each step, a stretch of the text by chance
    int64_t skipped = 4;     ///< first tokens of a sequence that stay exact
    double rate = 5e-4;      ///< AdamW's learning rate at first, which falls to 0 along a cosine
    uint64_t seed = 42;
};

/// EchoKV's second stage: changes the maps so that attention gives what it gives with the true keys and values. Each
/// step reads a sequence by the uncompressed model; of each rebuilt layer the loss is the mean squared difference of
/// the attention's outputs with true and with rebuilt keys and values, over all tokens and heads. AdamW as libtorch has
/// it: betas 0.9 and 0.999, weight decay 0.01.
/// @param ids the text's tokens
/// @returns of each step the square root of the layers' losses over the mean square of the true outputs
/// @throws UsageError for a text shorter than a sequence, or options that cannot be; Cancelled
std::vector<double> tune_echo(const Model& model, policies::EchoMaps& maps, std::span<const int32_t> ids,
                              const EchoTuningOptions& options, Progress& progress);

/// The same measure, the mean over the text's sequences one after the other, of maps as they are.
double attention_error(const Model& model, const policies::EchoMaps& maps, std::span<const int32_t> ids,
                       const EchoTuningOptions& options, Progress& progress);

}  // namespace kvscope::engine
