#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/checkpoint/classifier_config.h"
#include "engine/common/progress.h"

namespace kvscope::engine {

/// A BERT-like encoder with a linear classifier, in f32 (Devlin et al. 2019, arXiv:1810.04805).
class Encoder {
 public:
    /// Reads the weights of a Hugging Face directory. @throws checkpoint::CheckpointError if the files are invalid;
    /// Stopped after a stop request
    Encoder(const std::filesystem::path& directory, checkpoint::ClassifierConfig config, Progress& progress);

    [[nodiscard]] const checkpoint::ClassifierConfig& config() const { return config_; }

    /// Returns logits (n, labels) in f32 for at most `context_length` tokens, including special tokens around the text.
    [[nodiscard]] at::Tensor logits(std::span<const int32_t> ids) const;

 private:
    struct Linear {
        at::Tensor weight, bias;  ///< (out, in), (out)
    };
    struct Norm {
        at::Tensor weight, bias;
    };
    struct Layer {
        Linear query, key, value, output;
        Norm attention_norm;
        Linear up, down;
        Norm norm;
    };
    class Loader;

    [[nodiscard]] at::Tensor normalised(const at::Tensor& x, const Norm& norm) const;
    [[nodiscard]] at::Tensor attend(const Layer& layer, const at::Tensor& x) const;

    checkpoint::ClassifierConfig config_;
    at::Tensor words_, positions_, types_;
    Norm norm_;
    std::vector<Layer> layers_;
    Linear classifier_;
};

}  // namespace kvscope::engine
