#include "app/gui/drawing/missing_fonts.h"

#include <fmt/format.h>
#include <glib.h>
#include <utf8proc.h>

#include <set>
#include <utility>

namespace kvscope::gui {
namespace {

struct Known {
    GUnicodeScript script;
    const char* name;
};

/// Names of common scripts. For other scripts, the message names a character.
constexpr Known known_scripts[] = {
    {G_UNICODE_SCRIPT_ARABIC, "Arabic"},       {G_UNICODE_SCRIPT_ARMENIAN, "Armenian"},
    {G_UNICODE_SCRIPT_BENGALI, "Bengali"},     {G_UNICODE_SCRIPT_DEVANAGARI, "Devanagari"},
    {G_UNICODE_SCRIPT_ETHIOPIC, "Ethiopic"},   {G_UNICODE_SCRIPT_GEORGIAN, "Georgian"},
    {G_UNICODE_SCRIPT_GUJARATI, "Gujarati"},   {G_UNICODE_SCRIPT_GURMUKHI, "Gurmukhi"},
    {G_UNICODE_SCRIPT_HAN, "Chinese"},         {G_UNICODE_SCRIPT_HANGUL, "Korean"},
    {G_UNICODE_SCRIPT_HEBREW, "Hebrew"},       {G_UNICODE_SCRIPT_HIRAGANA, "Japanese"},
    {G_UNICODE_SCRIPT_KANNADA, "Kannada"},     {G_UNICODE_SCRIPT_KATAKANA, "Japanese"},
    {G_UNICODE_SCRIPT_KHMER, "Khmer"},         {G_UNICODE_SCRIPT_LAO, "Lao"},
    {G_UNICODE_SCRIPT_MALAYALAM, "Malayalam"}, {G_UNICODE_SCRIPT_MYANMAR, "Burmese"},
    {G_UNICODE_SCRIPT_SINHALA, "Sinhala"},     {G_UNICODE_SCRIPT_TAMIL, "Tamil"},
    {G_UNICODE_SCRIPT_TELUGU, "Telugu"},       {G_UNICODE_SCRIPT_THAI, "Thai"},
    {G_UNICODE_SCRIPT_TIBETAN, "Tibetan"},
};

bool is_emoji(uint32_t c) {
    return (c >= 0x1f1e6 && c <= 0x1f1ff) || (c >= 0x1f300 && c <= 0x1f6ff) || (c >= 0x1f900 && c <= 0x1faff);
}

bool is_assigned(uint32_t c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category != UTF8PROC_CATEGORY_CN && category != UTF8PROC_CATEGORY_CO && category != UTF8PROC_CATEGORY_CS;
}

std::string name_of(uint32_t c) {
    std::string number = fmt::format("U+{:04X}", c);
    if (is_emoji(c)) return fmt::format("emoji ({})", number);
    const GUnicodeScript script = g_unichar_get_script(c);
    for (const Known& known : known_scripts)
        if (known.script == script) return fmt::format("{} ({})", known.name, number);
    return number;
}

struct Missing {
    std::set<std::string> told;  ///< reported packages; "" for characters without a package
    std::vector<std::string> sentences;
};

Missing& missing() {
    static Missing all;
    return all;
}

}  // namespace

std::string font_package(uint32_t character) {
    if (is_emoji(character)) return "fonts-noto-color-emoji";
    if (!is_assigned(character)) return "";
    switch (g_unichar_get_script(character)) {
        case G_UNICODE_SCRIPT_HAN:
        case G_UNICODE_SCRIPT_HANGUL:
        case G_UNICODE_SCRIPT_HIRAGANA:
        case G_UNICODE_SCRIPT_KATAKANA:
        case G_UNICODE_SCRIPT_BOPOMOFO:
            return "fonts-noto-cjk";
        default:
            return "fonts-noto-core";
    }
}

void note_missing_character(uint32_t character) {
    const std::string package = font_package(character);
    Missing& all = missing();
    if (!all.told.insert(package).second) return;
    const std::string what = fmt::format("no installed font has {}, so boxes are shown instead", name_of(character));
    all.sentences.push_back(package.empty()
                                ? what + ". The character is unassigned or for private use: only a special font has it"
                                : fmt::format("{}. On Debian and Ubuntu, install the package {}, then start "
                                              "kvscope again",
                                              what, package));
}

std::vector<std::string> take_missing_font_messages() { return std::exchange(missing().sentences, {}); }

}  // namespace kvscope::gui
