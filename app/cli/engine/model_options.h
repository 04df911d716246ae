#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/model.h"
#include "engine/options/run_options.h"

namespace kvscope::cli {

/// Options of every command that runs a model: model, number type, device, threads and chat template.
class ModelOptions {
 public:
    enum class As { option, positional, both };

    /// Declares all options that the functions below declare. @returns all options except the model's
    std::vector<CLI::Option*> declare(CLI::App& app, As model = As::option);
    CLI::Option* declare_model(CLI::App& app, As model);
    CLI::Option* declare_dtype(CLI::App& app);
    /// Declares --device, for commands that can use a GPU.
    [[nodiscard]] CLI::Option* declare_device(CLI::App& app);
    CLI::Option* declare_threads(CLI::App& app);
    [[nodiscard]] std::vector<CLI::Option*> declare_chat_template(CLI::App& app);
    [[nodiscard]] CLI::Option* declare_special(CLI::App& app);

    [[nodiscard]] std::filesystem::path path() const;
    [[nodiscard]] bool use_template() const { return chat_template_ == "on"; }
    [[nodiscard]] bool parse_special() const { return parse_special_; }
    [[nodiscard]] const std::string& dtype() const { return dtype_; }
    [[nodiscard]] const std::string& device() const { return device_; }
    [[nodiscard]] int threads() const { return threads_; }

    /// Sets the options of a run that describe the model.
    void copy_to(engine::RunOptions& options) const;
    void set_threads() const;
    /// Sets the threads and loads the model onto the device.
    /// @throws as find_model, open_device_for_model and Model::open
    [[nodiscard]] engine::Model open(engine::Progress& progress,
                                     const std::function<void(const engine::Model&)>& before_weights = {}) const;

 private:
    std::filesystem::path model_;
    std::string dtype_ = "auto";
    std::string device_ = "cpu";
    std::string chat_template_ = "on";
    bool parse_special_ = true;
    int threads_ = 0;  // 0: one per core
};

}  // namespace kvscope::cli
