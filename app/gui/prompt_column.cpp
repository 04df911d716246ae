#include "app/gui/prompt_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/gui/shaped_text.h"

namespace kvscope::gui {
namespace {

ImU32 ink_on(ImU32 ground) {
    const ImVec4 c = ImGui::ColorConvertU32ToFloat4(ground);
    return 0.299f * c.x + 0.587f * c.y + 0.114f * c.z > 0.5f ? IM_COL32(0, 0, 0, 255) : IM_COL32_WHITE;
}

/// A word's leading space is fainter than its letters.
void draw_piece(ImDrawList* list, ImVec2 at, ImU32 ink, float cell, float width, std::string_view shown) {
    constexpr std::string_view space = "·";
    const ImU32 faint = (ink & 0xffffffu) | (90u << IM_COL32_A_SHIFT);
    if (shown.starts_with(space) && shown.size() > space.size() && !shown.substr(space.size()).starts_with(space)) {
        shown.remove_prefix(space.size());
        width -= cell;
        if (is_right_to_left(shown)) {
            draw_text(list, {at.x + width, at.y}, faint, space);
        } else {
            draw_text(list, at, faint, space);
            at.x += cell;
        }
    }
    const bool is_blank = shown.starts_with(space) || shown.starts_with("↵") || shown.starts_with("→");
    draw_text(list, at, is_blank ? faint : ink, shown, width);
}

void draw_outlines(Context& context, const PromptColumn& one, const PromptSearch& search, const PlacedToken& piece,
                   ImVec2 from, ImVec2 to) {
    const int64_t token = piece.token;
    const Theme& theme = context.theme;
    ImDrawList* list = ImGui::GetWindowDrawList();
    const auto outline = [&](int64_t span_first, int64_t span_last, ImU32 color, float thickness) {
        list->AddLine({from.x, from.y + 1}, {to.x, from.y + 1}, color, thickness);
        list->AddLine({from.x, to.y - 1}, {to.x, to.y - 1}, color, thickness);
        if (token == span_first) list->AddLine({from.x, from.y}, {from.x, to.y}, color, thickness);
        if (token == span_last) list->AddLine({to.x - 1, from.y}, {to.x - 1, to.y}, color, thickness);
    };
    const auto containing = [&](const TokenSpans& spans) {
        auto after = std::upper_bound(spans.begin(), spans.end(), token,
                                      [](int64_t t, const auto& span) { return t < span.first; });
        return after != spans.begin() && (--after)->second >= token ? after : spans.end();
    };
    if (one.pins && one.pins->contains(token)) {
        list->AddTriangleFilled(from, {from.x + 6, from.y}, {from.x, from.y + 6}, packed(theme.warning));
        list->AddLine({from.x, to.y - 2}, {to.x, to.y - 2}, packed(theme.warning), 2);
    }
    if (note_at(*one.document, token)) list->AddLine({from.x, to.y - 1}, {to.x, to.y - 1}, packed(theme.warning), 2);
    if (const auto mark = containing(one.marks); mark != one.marks.end())
        outline(mark->first, mark->second, packed(theme.mark), 2);
    if (search.found() && one.document->id() == context.session.focus()->id()) {
        if (const auto match = containing(*search.found()); match != search.found()->end()) {
            const bool is_current = static_cast<size_t>(match - search.found()->begin()) == search.current();
            outline(match->first, match->second, packed(theme.ink, is_current ? 1.0f : 0.6f), is_current ? 2.0f : 1.0f);
        }
    }
    const auto is_here = [&](const Cursor& cursor) {
        return cursor.run.document == one.run.document && cursor.run.prompt == one.run.prompt && cursor.contains(token);
    };
    const Cursor& selected = context.session.cursor();
    if (is_here(selected)) outline(selected.first_token, selected.last_token, packed(theme.accent), 2);
    if (is_here(context.session.hover())) list->AddRectFilled(from, to, packed(theme.hover, 0.3f));
}

std::pair<size_t, size_t> visible_lines(const PromptLines& lines, const PromptGrid& grid) {
    const auto first = static_cast<size_t>(std::max((grid.top - grid.origin.y) / grid.line, 0.0f));
    const auto last = static_cast<size_t>(std::max((grid.bottom - grid.origin.y) / grid.line + 1, 0.0f));
    return {std::min(first, lines.size()), std::min(last, lines.size())};
}

}  // namespace

const Note* note_at(const Document& document, int64_t token) {
    for (const Note& note : document.notes) {
        if (note.prompt == document.prompt && token >= note.first_token && token <= note.last_token) return &note;
    }
    return nullptr;
}

PromptColumn prompt_column(Session& session, const RunKey& key, const std::string& slot, const PromptGrid& grid) {
    PromptColumn out;
    out.run = key;
    out.document = session.document(key);
    out.prompt = prompt_text(session, *out.document);
    if (!out.prompt) return out;
    const std::string stamp = fmt::format("{}/{}/{}", out.document->stamp(), out.document->prompt, grid.cells);
    out.lines = session.tasks
                    .ask<PromptLines>(slot, stamp,
                                      [prompt = out.prompt, cells = grid.cells] { return break_lines(*prompt, cells); })
                    .value;
    // Lines of the prompt that was shown before do not fit this one.
    if (out.lines && !out.lines->placed.empty() && out.lines->placed.back().token + 1 != out.prompt->tokens.size())
        out.lines.reset();
    if (key.run >= 0) {
        const auto answer = prompt_counts(session, key);
        out.counts = answer.value;
        out.error = answer.error;
    }
    out.marks = marked_spans(session, *out.document);
    const auto pins = out.document->pins.find(out.document->prompt);
    if (pins != out.document->pins.end()) out.pins = &pins->second;
    return out;
}

void draw_prompt_column(Context& context, const PromptColumn& one, const PromptGrid& grid, const PromptSearch& search) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (!one.lines || !one.prompt) {
        list->AddText({one.x, grid.top}, packed(context.theme.ink_quiet), "reading …");
        return;
    }
    const auto [first, last] = visible_lines(*one.lines, grid);
    list->AddRectFilled({one.x - 4, grid.top}, {one.x + grid.column - ImGui::GetFontSize() + 4, grid.bottom},
                        packed(context.theme.ground));
    const auto& reader = *one.document->reader();
    const size_t layers = reader.has_model() ? static_cast<size_t>(reader.model().n_layers) : 1;
    const size_t rows = one.counts ? one.counts->kept->n_rows : 1;
    const MapColors colors = prompt_colors(context.theme, grid.by_heads ? layers * rows : layers);
    const auto* counts = one.counts ? (grid.by_heads ? &one.counts->heads : &one.counts->layers) : nullptr;
    const float below = std::round((grid.line - ImGui::GetFontSize()) / 2);
    const auto place = [&](size_t line, const PlacedToken& piece) {
        return ImVec2{one.x + grid.cell * static_cast<float>(piece.cell),
                      grid.origin.y + grid.line * static_cast<float>(line)};
    };
    const auto ground_of = [&](const PlacedToken& piece) {
        const bool is_kept = counts && piece.token < counts->size() && (*counts)[piece.token] > 0;
        return is_kept ? color_of(colors, static_cast<float>((*counts)[piece.token])) : ImU32{0};
    };
    for (size_t i = first; i < last; ++i) {
        for (const PlacedToken& piece : one.lines->line(i)) {
            const ImU32 ground = ground_of(piece);
            if (!ground) continue;
            const ImVec2 from = place(i, piece);
            const float width = grid.cell * static_cast<float>(piece.n_cells);
            list->AddRectFilled({from.x, from.y + 1}, {from.x + width - 1, from.y + grid.line - 1}, ground);
        }
        for (const PlacedToken& piece : one.lines->line(i)) {
            const ImVec2 from = place(i, piece);
            const float width = grid.cell * static_cast<float>(piece.n_cells);
            const ImU32 ground = ground_of(piece);
            const ImU32 ink =
                ground ? ink_on(ground) : packed(one.run.run < 0 ? context.theme.ink : context.theme.ink_quiet);
            const std::string_view shown = one.prompt->shown[piece.token];
            draw_piece(list, {from.x, from.y + below}, ink, grid.cell, width,
                       shown.substr(piece.begin, piece.end - piece.begin));
            draw_outlines(context, one, search, piece, from, {from.x + width, from.y + grid.line});
        }
    }
}

int64_t token_under_mouse(const PromptColumn& one, const PromptGrid& grid) {
    const ImVec2 mouse = ImGui::GetMousePos();
    if (!one.lines || !ImGui::IsWindowHovered() || mouse.y < grid.top || mouse.y >= grid.bottom || mouse.x < one.x ||
        mouse.x >= one.x + grid.column)
        return -1;
    const auto line = static_cast<size_t>(std::max((mouse.y - grid.origin.y) / grid.line, 0.0f));
    if (line >= one.lines->size()) return -1;
    const float cell = (mouse.x - one.x) / grid.cell;
    for (const PlacedToken& piece : one.lines->line(line)) {
        if (cell >= static_cast<float>(piece.cell) && cell < static_cast<float>(piece.cell + piece.n_cells))
            return piece.token;
    }
    return -1;
}

}  // namespace kvscope::gui
