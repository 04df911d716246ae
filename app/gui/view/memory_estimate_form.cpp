#include "app/gui/view/memory_estimate_form.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "analysis/tables/table_format.h"
#include "app/gui/view/widgets.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

std::string text_of(const analysis::CacheShape& shape) {
    return fmt::format("{} layers, {} KV heads of size {}, {} bytes per number: {} bytes per token", shape.n_layers,
                       shape.n_kv_heads, shape.head_dim, shape.bytes_per_number,
                       analysis::format_count(shape.bytes_per_token()));
}

}  // namespace

analysis::CacheShape MemoryChoice::shape(const trace::ModelAttributes& model) const {
    return analysis::cache_shape(model, model_);
}

std::optional<analysis::MemoryAt> MemoryChoice::at(const trace::ModelAttributes& model) const {
    if (!is_on_) return std::nullopt;
    return analysis::MemoryAt{n_tokens_, shape(model),
                              budgets_grow_ ? analysis::BudgetsAt::shares : analysis::BudgetsAt::entries,
                              analysis::cache_shape(model)};
}

void MemoryChoice::draw(const trace::ModelAttributes& model, const ModelNames& names) {
    const float em = ImGui::GetFontSize();
    ImGui::Checkbox("memory at", &is_on_);
    ImGui::SetItemTooltip("Adds columns with the cache's memory for a longer text or another model");
    if (!is_on_) return;
    ImGui::SameLine();
    ImGui::SetNextItemWidth(8 * em);
    ImGui::InputScalar("tokens of##memory", ImGuiDataType_S64, &n_tokens_);
    n_tokens_ = std::clamp<int64_t>(n_tokens_, 1, analysis::most_tokens_at);
    same_line_if_fits(10 * em);
    ImGui::SetNextItemWidth(10 * em);
    analysis::CacheShape own = analysis::cache_shape(model);
    own.name = displayed_model_name(names, model);
    if (ImGui::BeginCombo("##memory model",
                          analysis::find_known_cache_shape(model_) ? model_.c_str() : own.name.c_str())) {
        const auto choice = [&](const analysis::CacheShape& each, const std::string& name) {
            if (ImGui::Selectable(fmt::format("{}##{}", each.name, name).c_str(), name == model_)) model_ = name;
            item_tooltip(text_of(each));
        };
        choice(own, "");
        for (const auto& each : analysis::known_cache_shapes()) choice(each, each.name);
        ImGui::EndCombo();
    }
    item_tooltip(text_of(shape(model)));
    same_line_if_fits(9 * em);
    ImGui::Checkbox("budgets grow##memory", &budgets_grow_);
    ImGui::SetItemTooltip(
        "On: each run keeps the same share of the longer text.\nOff: budgets in entries stay the same; budgets in "
        "bytes or percent remain shares of the text.");
    same_line_if_fits(12 * em);
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("full: %s", analysis::format_bytes(at(model)->full_bytes()).c_str());
}

void MemoryChoice::save(nlohmann::json& state) const {
    state["memory"] = {{"on", is_on_}, {"tokens", n_tokens_}, {"model", model_}, {"budgets grow", budgets_grow_}};
}

void MemoryChoice::load(const nlohmann::json& state) {
    const auto saved = state.value("memory", nlohmann::json::object());
    is_on_ = saved.value("on", is_on_);
    n_tokens_ = std::clamp<int64_t>(saved.value("tokens", n_tokens_), 1, analysis::most_tokens_at);
    model_ = saved.value("model", model_);
    budgets_grow_ = saved.value("budgets grow", budgets_grow_);
}

}  // namespace kvscope::gui
