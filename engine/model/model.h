#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/types.h"
#include "policies/api/memo.h"
#include "trace/records/records.h"

namespace kvscope::engine {

[[nodiscard]] trace::ModelAttributes model_attributes(const checkpoint::ModelConfig& config,
                                                      const std::string& fingerprint);

class Model {
 public:
    /// Reads a model's files.
    /// @param before_weights called before the weights are read, with a model that has no weights; may throw to stop
    /// @throws checkpoint::CheckpointError for unusable files; RunError if the weights do not fit in memory
    [[nodiscard]] static Model open(const std::filesystem::path& path, kernels::DType dtype, Progress& progress,
                                    const ComputeDevice& device = {},
                                    const std::function<void(const Model&)>& before_weights = {});

    [[nodiscard]] const checkpoint::Checkpoint& checkpoint() const { return *checkpoint_; }
    [[nodiscard]] const checkpoint::Tokenizer& tokenizer() const { return *tokenizer_; }
    [[nodiscard]] const std::optional<checkpoint::ChatTemplate>& chat_template() const { return chat_template_; }
    [[nodiscard]] const checkpoint::ModelConfig& config() const { return checkpoint_->config(); }
    [[nodiscard]] bool is_loaded() const { return transformer_ != nullptr; }
    [[nodiscard]] const Transformer& transformer() const { return *transformer_; }
    [[nodiscard]] kernels::DType dtype() const { return dtype_; }
    [[nodiscard]] const ComputeDevice& device() const { return device_; }
    const std::string& fingerprint() const;
    /// Results that policies compute from the weights. All policies share them.
    [[nodiscard]] const std::shared_ptr<policies::ModelMemo>& memo() const { return memo_; }

    /// Ids that end generation, in ascending order. They come from the configuration and the tokenizer.
    [[nodiscard]] const std::vector<int32_t>& end_ids() const { return end_ids_; }
    [[nodiscard]] std::span<const int32_t> stop_ids(bool ignore_eos) const {
        return ignore_eos ? std::span<const int32_t>() : std::span<const int32_t>(end_ids_);
    }

    [[nodiscard]] std::string answer_text(std::span<const int32_t> ids, const std::stop_token& stop = {}) const;

    [[nodiscard]] trace::ModelAttributes attributes() const;

 private:
    std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
    std::unique_ptr<checkpoint::Tokenizer> tokenizer_;
    std::optional<checkpoint::ChatTemplate> chat_template_;
    kernels::DType dtype_ = kernels::DType::f32;
    ComputeDevice device_;
    std::unique_ptr<Transformer> transformer_;
    mutable std::string fingerprint_;  ///< empty until first requested
    std::vector<int32_t> end_ids_;
    std::shared_ptr<policies::ModelMemo> memo_ = std::make_shared<policies::ModelMemo>();
};

}  // namespace kvscope::engine
