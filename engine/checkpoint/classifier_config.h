#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

struct ClassifierConfig {
    std::string architecture;  ///< BertForTokenClassification or XLMRobertaForTokenClassification
    std::string prefix;        ///< start of the encoder's tensor names: "bert." or "roberta."
    int n_layers = 0;
    int n_heads = 0;
    int64_t hidden_size = 0;
    int64_t intermediate_size = 0;
    int64_t vocab_size = 0;
    int64_t n_positions = 0;     ///< number of rows in the position table
    int64_t first_position = 0;  ///< row of the first token
    int64_t type_vocab_size = 0;
    double layer_norm_eps = 0;
    static constexpr int n_labels = 2;  ///< labels 0 (drop) and 1 (keep)

    /// Returns the number of tokens per pass, including the special tokens around the text.
    [[nodiscard]] int64_t context_length() const;
};

/// Reads config.json of a Hugging Face directory. @throws CheckpointError
ClassifierConfig read_classifier_config(const std::filesystem::path& directory);

/// Returns a phrase such as "supported are ..." that names the published classifiers.
[[nodiscard]] std::string supported_classifiers();

}  // namespace kvscope::checkpoint
