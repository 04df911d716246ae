#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/types.h"
#include "policies/interface/model_memo.h"
#include "trace/records.h"

namespace kvscope::engine {

/// What a trace says of a model with this configuration, without the type of its weights.
trace::ModelAttributes model_attributes(const checkpoint::ModelConfig& config, const std::string& fingerprint);

/// A model ready to run: its files, tokenizer, chat template and weights.
class Model {
 public:
    /// @throws checkpoint::CheckpointError for files that cannot be used; RunError where the weights do not fit into
    /// memory; Cancelled.
    /// @param device where the transformer is to run
    /// @param before_weights is called with a model that has all but its transformer: what is wrong with the rest of a
    /// job is told before the weights are read, which takes minutes. What it throws passes.
    static Model open(const std::filesystem::path& path, kernels::DType dtype, Progress& progress,
                      const ComputeDevice& device = {}, const std::function<void(const Model&)>& before_weights = {});

    const checkpoint::Checkpoint& checkpoint() const { return *checkpoint_; }
    const checkpoint::Tokenizer& tokenizer() const { return *tokenizer_; }
    const std::optional<checkpoint::ChatTemplate>& chat_template() const { return chat_template_; }
    const checkpoint::ModelConfig& config() const { return checkpoint_->config(); }
    /// False in what Model::open gives `before_weights`, which has no transformer.
    bool is_loaded() const { return transformer_ != nullptr; }
    const Transformer& transformer() const { return *transformer_; }
    kernels::DType dtype() const { return dtype_; }
    const ComputeDevice& device() const { return device_; }
    const std::string& fingerprint() const;
    /// What policies found out of the weights.
    const std::shared_ptr<policies::ModelMemo>& memo() const { return memo_; }

    /// Ids at which generation ends: the configuration's and the tokenizer's, ascending.
    const std::vector<int32_t>& end_ids() const { return end_ids_; }
    /// The same, or none where generation is to go on whatever comes.
    std::span<const int32_t> stop_ids(bool ignore_eos) const {
        return ignore_eos ? std::span<const int32_t>() : std::span<const int32_t>(end_ids_);
    }

    /// An answer as text, without its end-of-text tokens.
    std::string answer_text(std::span<const int32_t> ids) const;

    trace::ModelAttributes attributes() const;

 private:
    std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
    std::unique_ptr<checkpoint::Tokenizer> tokenizer_;
    std::optional<checkpoint::ChatTemplate> chat_template_;
    kernels::DType dtype_ = kernels::DType::f32;
    ComputeDevice device_;
    std::unique_ptr<Transformer> transformer_;
    mutable std::string fingerprint_;  ///< empty: not asked for yet, which is so in open() alone
    std::vector<int32_t> end_ids_;
    std::shared_ptr<policies::ModelMemo> memo_ = std::make_shared<policies::ModelMemo>();
};

}  // namespace kvscope::engine
