#include "analysis/drawing/short_label.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace kvscope::analysis {
namespace {

constexpr size_t most_characters = 40;
constexpr size_t characters_behind = 16;  // length of the end, which contains the budget
constexpr std::string_view before_budget = " @ ";

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

std::string without_middle(const std::string& text) {
    std::vector<size_t> begins;
    for (size_t at = 0; at < text.size(); ++at)
        if (begins_character(text[at])) begins.push_back(at);
    if (begins.size() <= most_characters) return text;
    return text.substr(0, begins[most_characters - 1 - characters_behind]) + "…" +
           text.substr(begins[begins.size() - characters_behind]);
}

/// Whether a parameter's value is a path; "16/40" is not.
bool is_path(std::string_view value) {
    return value.find('/') != std::string_view::npos &&
           value.find_first_not_of("0123456789/+ ") != std::string_view::npos;
}

std::string without_folders(const std::string& label) {
    std::string out;
    for (size_t at = 0; at < label.size();) {
        const size_t value = label.find('=', at);
        if (value == std::string::npos) return out + label.substr(at);
        out += label.substr(at, value + 1 - at);
        at = std::min({label.find(',', value), label.find(before_budget, value), label.size()});
        const std::string_view text = std::string_view(label).substr(value + 1, at - value - 1);
        out += is_path(text) ? text.substr(text.rfind('/') + 1) : text;
    }
    return out;
}

template <class Act>
void act_before(LegendEntry& entry, const Act& act) {
    entry.label.resize(entry.label.size() - entry.behind.size());
    const std::string before = entry.whole;
    act(entry.label, entry.whole);
    entry.label += entry.behind;
    if (entry.whole != before) entry.whole += entry.behind;
}

template <class Act>
void for_each_label(Figure& figure, const Act& act) {
    for (LegendEntry& entry : figure.legend)
        if (entry.symbol == LegendEntry::Symbol::line || entry.symbol == LegendEntry::Symbol::marker)
            act_before(entry, act);
    for (Panel& panel : figure.panels) {
        if (panel.subject.run >= 0) act(panel.title, panel.whole_title);
        for (Axis* axis : {&panel.x, &panel.y}) {
            if (axis->dimension != Dimension::run) continue;
            for (Tick& tick : axis->ticks) act(tick.label, tick.whole);
        }
    }
}

}  // namespace

std::string short_label(const std::string& label) { return without_middle(without_folders(label)); }

void shorten_labels(Figure& figure) {
    std::map<std::string, std::string> shorts;  // short labels by full label
    // If a label has a full form, a user chose the label, and it stays unchanged.
    for_each_label(figure, [&](const std::string& label, const std::string& whole) {
        shorts[label] = whole.empty() ? short_label(label) : label;
    });
    const auto tell_apart = [&](const auto& otherwise) {
        std::map<std::string, std::set<std::string>> wholes;
        for (const auto& [whole, text] : shorts) wholes[text].insert(whole);
        for (auto& [whole, text] : shorts)
            if (wholes[text].size() > 1) text = otherwise(whole);
    };
    tell_apart(without_middle);
    tell_apart([](const std::string& whole) { return whole; });
    for_each_label(figure, [&](std::string& label, std::string& whole) {
        const std::string& text = shorts.at(label);
        if (text == label) return;
        whole = whole.empty() ? label : fmt::format("{} ({})", label, whole);
        label = text;
    });
}

}  // namespace kvscope::analysis
