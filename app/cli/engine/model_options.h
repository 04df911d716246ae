#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"

namespace kvscope::cli {

/// What every command that runs a model asks of it alike: which one, in what numbers, on which device and how many
/// threads, and whether its chat template is put around prompts.
class ModelOptions {
 public:
    enum class As { option, positional, both };

    /// Declares -m/--model (or the positional `model`), --dtype, --device, -t/--threads, --chat-template,
    /// --apply-chat-template, --no-template and --no-special. @returns all but the model
    std::vector<CLI::Option*> declare(CLI::App& app, As model = As::option);
    CLI::Option* declare_model(CLI::App& app, As model);
    CLI::Option* declare_dtype(CLI::App& app);
    /// Not of what computes on the processor wherever the model is.
    CLI::Option* declare_device(CLI::App& app);
    CLI::Option* declare_threads(CLI::App& app);
    std::vector<CLI::Option*> declare_chat_template(CLI::App& app);
    CLI::Option* declare_special(CLI::App& app);

    /// Where the model is. @throws what program::find_model throws
    std::filesystem::path path() const;
    bool use_template() const { return chat_template_ == "on"; }
    bool parse_special() const { return parse_special_; }
    const std::string& dtype() const { return dtype_; }
    const std::string& device() const { return device_; }
    int threads() const { return threads_; }

    /// From now on this thread computes with as many as were asked for.
    void set_threads() const;
    /// Sets the threads, and loads the model onto the device; the processor where --device was not declared.
    /// @param before_weights as engine::Model::open takes it
    /// @throws what program::find_model, engine::device_for and engine::Model::open throw
    engine::Model open(engine::Progress& progress,
                       const std::function<void(const engine::Model&)>& before_weights = {}) const;

 private:
    std::filesystem::path model_;
    std::string dtype_ = "auto";
    std::string device_ = "cpu";
    std::string chat_template_ = "on";
    bool parse_special_ = true;
    int threads_ = 0;  // 0: one a core
};

}  // namespace kvscope::cli
